/** One of the two large frames: its picture in the common pose, landmarks, pointer. */
import { apply, distance, invert } from "../../model/affine";
import { move } from "../../model/draft";
import { other } from "../../model/knowledge";
import { pointOf } from "../../model/pose";
import type { Side } from "../../model/messages";
import type { Point } from "../../model/affine";
import { paintCursor, paintDraft, paintProposal } from "../landmarks/marks";
import { make } from "../make";
import type { Page } from "../page";
import { listenForGestures } from "./gestures";
import { paintSketch } from "./curves";
import { paintFrame, strokeVisibly, trace } from "./painting";
import { PALETTE } from "./palette";
import { prepare } from "./repainting";

const REACH_PX = 13;
const REACH_OF_FINGER_PX = 24;

export class Panel {
  readonly element: HTMLElement;
  readonly label = make("span", { class: "frame-label" });
  readonly #canvas = make("canvas", { "aria-hidden": "true" });
  #words: (Node | string)[] = [];

  constructor(
    private readonly page: Page,
    readonly side: Side,
  ) {
    this.element = make(
      "div",
      {
        class: `frame frame-${side}`,
        tabindex: "0",
        role: "application",
        "aria-roledescription": "frame",
        "aria-describedby": "frames-hint",
        "data-testid": `frame-${side}`,
      },
      this.#canvas,
      this.label,
    );
    this.element.addEventListener("focus", () => page.pairView.active.set(side));
    this.#listen();
  }

  name(number: number, label: string, isTurned: boolean): void {
    const turned = isTurned ? " · rotated to fit" : "";
    const frame = `frame ${number}`;
    // Frames of a video are called so already; those of a folder by their files.
    const details = label.startsWith(frame) ? label.slice(frame.length) : label === "" ? "" : ` · ${label}`;
    this.#words = [make("strong", {}, frame), `${details}${turned}`];
    this.showMoment(0);
    this.element.setAttribute("aria-label", `${frame}${details}${turned}`);
  }

  /** Say which neighbour in time is shown. */
  showMoment(later: number): void {
    const beside = later === 0 ? "" : ` · ${Math.abs(later)} ${later > 0 ? "later" : "earlier"}`;
    this.label.replaceChildren(...this.#words, beside);
    this.label.classList.toggle("elsewhere", later !== 0);
  }

  /** Say where the frame's pixels are on the screen, for tests and tools. */
  publish(): void {
    this.element.dataset["screenFromFrame"] = this.page.pairView.screenFrom(this.side).join(",");
  }

  paint(): void {
    const { app, pairView } = this.page;
    const { side } = this;
    const { context } = prepare(this.#canvas);
    const { question } = app.drawing;
    const knowledge = app.drawing.knowledge.value;
    if (question === null || knowledge === null) return;
    const screenFromFrame = pairView.screenFrom(side);
    // While a key is held, the other frame takes this one's place.
    const shown = pairView.isBlinking.value ? other(side) : side;
    const planeOfShown = pairView.screenOf(shown, side);
    const later = pairView.moment.value[shown];
    const picture = app.pictures.ready(question[shown] + later);
    if (picture !== null) paintFrame(context, app.showing.looks.picture(shown, picture), planeOfShown);
    // Landmarks are of the frame itself.
    if (later !== 0) return;

    trace(context, knowledge.relation.outline(other(side)), screenFromFrame);
    context.setLineDash([7, 5]);
    strokeVisibly(context, PALETTE[other(side)], 1);
    context.setLineDash([]);

    const marking = { context, screenFromFrame, side };
    const proposal = app.drawing.proposal.value;
    const draft = app.drawing.draft.value;
    if (proposal?.verdict === "yes" && proposal.sure) paintProposal(marking, proposal.landmarks);
    paintDraft(marking, draft, knowledge);
    paintSketch(context, this.page.curves, side, screenFromFrame);
    const cursor = pairView.cursor.value;
    if (cursor?.side === side) paintCursor(marking, cursor.point);
  }

  #listen(): void {
    const { app, pairView, hand, curves } = this.page;
    const { side } = this;
    const frameOf = (place: Point) => apply(invert(pairView.screenFrom(side)), place);
    const onScreen = (index: number) => {
      const landmark = app.drawing.draft.value.landmarks[index]!;
      return apply(pairView.screenFrom(side), pointOf(landmark, side));
    };
    listenForGestures(
      this.element,
      {
        grab: (place, isTouch) => {
          const { landmarks, open } = app.drawing.draft.value;
          // Somebody who looks for a partner may find it close to another landmark.
          if (open !== null || curves.isOn || pairView.moment.value[side] !== 0) return null;
          const reach = isTouch ? REACH_OF_FINGER_PX : REACH_PX;
          // A vessel is where the program found it.
          const distances = landmarks.map(({ curve }, index) => {
            return (curve ?? null) === null ? distance(onScreen(index), place) : Infinity;
          });
          const nearest = distances.indexOf(Math.min(...distances));
          return nearest >= 0 && distances[nearest]! <= reach ? nearest : null;
        },
        onTap: (place) => {
          this.element.focus({ preventScroll: true });
          // What is seen there is another frame.
          if (pairView.backInTime()) return;
          if (curves.isOn) curves.tap(side, frameOf(place));
          else hand.tap(side, frameOf(place));
        },
        onGrabbed: (index) => {
          pairView.active.set(side);
          hand.pick(index);
        },
        onDrag: (index, to, isFirst) => {
          if (isFirst) app.drawing.remember();
          app.drawing.adjust((draft) => move(draft, index, side, frameOf(to), "clicked"));
        },
        onDragEnd: () => undefined,
        drawing: {
          isOn: () => curves.isOn,
          draw: (place, isFirst) => curves.draw(side, frameOf(place), isFirst),
          lift: (isComplete) => void (isComplete ? curves.lift(side) : curves.undo()),
        },
        onPan: (by, alone) => pairView.pan(by, side, alone),
        onZoom: (at, factor) => pairView.zoom(factor, side, at),
        onTime: (by) => pairView.goInTime(side, by, app.state.value?.frames ?? 0),
        onHover: (place) => pairView.pointer.set(place === null ? null : { side, point: frameOf(place) }),
      },
      onScreen,
    );
  }
}
