/** A frame that a person lays over the other one: where it lies then, and the landmarks that say so. */
import type { Affine, Point } from "./affine";
import { add, compose, distance, scaled, subtract, translation } from "./affine";
import { chain, homographyFrom } from "./homography";
import type { Landmark } from "./messages";
import { boxOf, isInside, momentsOf } from "./polygon";
import { Relation } from "./relation";

/** How far from the middle of what both frames show landmarks lie, as a share of its box. */
const SPREAD = 0.35;

/** The corners towards which they lie. */
const CORNERS = [[-1, -1], [1, -1], [-1, 1], [1, 1]] as const;

/** Return the map that turns by an angle, in radians, and scales about a centre. */
export function turnAbout(centre: Point, angle: number, scale = 1): Affine {
  const [cosine, sine] = [scale * Math.cos(angle), scale * Math.sin(angle)];
  const turned: Affine = [cosine, -sine, 0, sine, cosine, 0];
  return compose(translation(centre.x, centre.y), compose(turned, translation(-centre.x, -centre.y)));
}

/** Return the map that turns and scales about a centre so that one place comes to where another one was. */
export function turnFromTo(centre: Point, from: Point, to: Point): Affine | null {
  const [before, after] = [subtract(from, centre), subtract(to, centre)];
  const [length, wanted] = [distance(from, centre), distance(to, centre)];
  if (length < 1 || wanted < 1) return null;
  const angle = Math.atan2(before.x * after.y - before.y * after.x, before.x * after.x + before.y * after.y);
  return turnAbout(centre, angle, wanted / length);
}

/** Return how frames lie if j is moved over the plane of i. */
export function laid(relation: Relation, move: Affine): Relation {
  const iFromJ = chain(homographyFrom(move), relation.iFromJ);
  return new Relation(iFromJ, relation.lens, relation.frame, relation.field);
}

/** Return landmarks that say how the frames lie, spread over what both show; none if they share too little. */
export function landmarksOf(relation: Relation): Landmark[] {
  const overlap = relation.overlap("j");
  const region = momentsOf(overlap);
  if (region === null) return [];
  const { least, most } = boxOf(overlap);
  const reach = scaled(subtract(most, least), SPREAD);
  return CORNERS.flatMap(([right, down]) => {
    const offset = { x: right * reach.x, y: down * reach.y };
    // Nearer to the middle where the corner of the box is outside of what both show.
    for (let share = 1; share > 0.1; share *= 0.7) {
      const j = add(region.centre, scaled(offset, share));
      const i = relation.seen("j", j);
      if (isInside(overlap, j)) {
        return [{ x_i: i.x, y_i: i.y, x_j: j.x, y_j: j.y, origin: "laid", active: true, check: false, sigma_px: null, along_deg: null, curve: null } as const];
      }
    }
    return [];
  });
}
