/** How two frames lie to each other: where a point of the one is seen in the other, through the lens both were seen by. */
import type { Affine, Point } from "./affine";
import { compose, invert, translation } from "./affine";
import type { Homography } from "./homography";
import { inverse, project, tangentAt } from "./homography";
import { bend, slopesAt, straighten } from "./lens";
import type { LensNumbers, Side } from "./messages";
import type { Polygon, Size } from "./polygon";
import { intersect, outlineOf } from "./polygon";

/** The longest side of an outline, as a share of the frame's longer side: a lens bends it. */
const LONGEST_SIDE = 1 / 8;

export class Relation {
  readonly #jFromI: Homography;
  readonly #middle: Point;

  constructor(
    /** Between straight pixels. */
    readonly iFromJ: Homography,
    readonly lens: LensNumbers | null,
    readonly frame: Size,
    /** The part of a frame that shows the scene, convex. */
    readonly field: Polygon = outlineOf(frame),
  ) {
    this.#jFromI = inverse(iFromJ);
    this.#middle = { x: (frame.width - 1) / 2, y: (frame.height - 1) / 2 };
  }

  /** Return where a point that is seen in one frame is seen in the other. */
  seen(from: Side, point: Point): Point {
    return bend(this.lens, project(this.#mapFrom(from), straighten(this.lens, point), this.#middle));
  }

  /** Return the affine map from one frame to the other around a point, as both are seen. */
  tangent(from: Side, point: Point): Affine {
    const straight = straighten(this.lens, point);
    const target = this.seen(from, point);
    const map = tangentAt(this.#mapFrom(from), straight);
    const linear = compose(compose(invert(slopesAt(this.lens, target)), linearOf(map)), slopesAt(this.lens, point));
    return compose(translation(target.x, target.y), compose(linear, translation(-point.x, -point.y)));
  }

  /** Return the outline of what a frame shows as it lies in the other one. */
  outline(of: Side): Polygon {
    return this.#finely(this.field).map((corner) => this.seen(of, corner));
  }

  /** Return the part of what a frame shows that the other one shows too. */
  overlap(inside: Side): Polygon {
    return intersect(this.outline(inside === "i" ? "j" : "i"), this.field);
  }

  #finely(polygon: Polygon): Polygon {
    const longest = LONGEST_SIDE * Math.max(this.frame.width, this.frame.height);
    return polygon.flatMap((corner, index) => {
      const next = polygon[(index + 1) % polygon.length]!;
      const steps = Math.ceil(Math.hypot(next.x - corner.x, next.y - corner.y) / longest);
      return Array.from({ length: steps }, (_, step) => {
        const share = step / steps;
        return { x: corner.x + share * (next.x - corner.x), y: corner.y + share * (next.y - corner.y) };
      });
    });
  }

  #mapFrom(side: Side): Homography {
    return side === "j" ? this.iFromJ : this.#jFromI;
  }
}

/** Return an affine map without its shift. */
export function linearOf([a, b, , d, e]: Affine): Affine {
  return [a, b, 0, d, e, 0];
}
