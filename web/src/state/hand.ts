/** What a person does to landmarks, by pointer or by key. */
import type { Point } from "../model/affine";
import { add, apply, invert, scaled } from "../model/affine";
import type { Draft, Open } from "../model/draft";
import { abandon, adopt, begin, complete, move, remove, select, steer, step, toggle, toggleCheck } from "../model/draft";
import { pointOf } from "../model/pose";
import { other } from "../model/knowledge";
import type { Side } from "../model/messages";
import { contains } from "../model/polygon";
import type { Application } from "./application";
import type { Drawing } from "./drawing";
import type { PairView } from "./pairview";
import type { Snapping } from "./snapping";

export class Hand {
  readonly #drawing: Drawing;
  /** The open point was set at the cursor, not by a pointer. */
  #isByKeys = false;

  constructor(
    private readonly app: Application,
    private readonly pairView: PairView,
    private readonly snapping: Snapping,
  ) {
    this.#drawing = app.drawing;
  }

  /** Set a point: the first of a landmark, its partner in the other frame, or the first one anew. */
  tap(side: Side, point: Point): void {
    const knowledge = this.#drawing.knowledge.value;
    if (knowledge === null || this.app.isAnswering.value) return;
    this.#isByKeys = false;
    this.pairView.active.set(side);
    this.pairView.cursor.set(null);
    if (!contains(this.#drawing.frame, point)) return this.app.say("This place is outside of the frame.");
    const { open } = this.#drawing.draft.value;
    if (open !== null && open.side !== side) {
      return this.#complete(point);
    }
    const expected = knowledge.predict(side, point);
    this.#drawing.edit((draft) => begin(draft, side, point, expected.point));
    this.pairView.bringTogether(side, point, expected);
  }

  /** Take the expected place of the partner; false where nothing is open. */
  accept(): boolean {
    const { open } = this.#drawing.draft.value;
    if (open === null) return false;
    if (this.#drawing.knowledge.value?.errorPx === null && !open.steered) {
      this.app.say("Nothing is known yet of where this point is. Mark it in the other frame.");
    } else if (contains(this.#drawing.frame, open.partner)) {
      this.#complete();
      if (this.#isByKeys) this.#goOnByKeys(open);
    } else {
      this.app.say("The expected place is outside of the other frame. Mark the right place, or delete the point.", "warning");
    }
    return true;
  }

  /** Set a point where the cursor is; the partner's place is then where the keys act. */
  placeAtCursor(): void {
    // A neighbour in time is shown: no landmark is of it.
    if (this.pairView.backInTime()) return;
    const cursor = this.pairView.cursor.value;
    if (cursor === null) return this.pairView.moveCursor({ x: 0, y: 0 });
    this.tap(cursor.side, cursor.point);
    this.#isByKeys = this.#drawing.draft.value.open !== null;
    if (this.#isByKeys) this.pairView.active.set(other(cursor.side));
  }

  /** Move what is selected, or the cursor, in a direction of the screen. */
  nudge(direction: Point, size: "small" | "normal" | "large"): void {
    const { open, selected, landmarks } = this.#drawing.draft.value;
    const side = this.pairView.active.value;
    const pixels = { small: 0.1, normal: 1, large: 10 }[size];
    if (open !== null) {
      if (open.side === side) return this.#restart(add(open.point, this.#inFrame(side, direction, pixels)));
      const partner = add(open.partner, this.#inFrame(side, direction, pixels));
      this.#drawing.adjust((draft) => steer(draft, partner));
      return this.pairView.reveal(side, partner);
    }
    if (selected === null) return this.pairView.moveCursor(scaled(direction, { small: 1, normal: 10, large: 50 }[size]));
    if ((landmarks[selected]!.curve ?? null) !== null) return this.app.say("A vessel stays where it was found. Delete it to draw it anew.");
    const to = add(pointOf(landmarks[selected]!, side), this.#inFrame(side, direction, pixels));
    this.#drawing.edit((draft) => move(draft, selected, side, to, "clicked"));
    this.pairView.reveal(side, to);
  }

  /** Select a landmark that is seen. */
  pick(index: number): void {
    this.pairView.cursor.set(null);
    this.#drawing.adjust((draft) => select(draft, index));
  }

  /** Select a landmark and have it seen. */
  select(index: number | null): void {
    this.#drawing.adjust((draft) => select(abandon(draft), index));
    const landmark = index === null ? undefined : this.#drawing.draft.value.landmarks[index];
    if (landmark === undefined) return;
    this.pairView.cursor.set(null);
    this.pairView.reveal("i", pointOf(landmark, "i"));
    this.pairView.reveal("j", pointOf(landmark, "j"));
  }

  step(by: 1 | -1): void {
    this.select(step(this.#drawing.draft.value, by).selected);
  }

  remove(): void {
    const { open, selected } = this.#drawing.draft.value;
    if (open !== null) this.#drawing.edit(abandon);
    else if (selected !== null) this.#drawing.edit((draft) => remove(draft, selected));
  }

  switchOff(): void {
    const { selected } = this.#drawing.draft.value;
    if (selected === null) return this.app.say("Select a landmark first.");
    this.#drawing.edit((draft) => toggle(draft, selected));
  }

  leaveOut(): void {
    const { selected } = this.#drawing.draft.value;
    if (selected === null) return this.app.say("Select a landmark first.");
    this.#drawing.edit((draft) => toggleCheck(draft, selected));
  }

  /** Let go of the open point, the selection or the cursor; false where there is none. */
  letGo(): boolean {
    const { open, selected } = this.#drawing.draft.value;
    if (open !== null) this.#drawing.edit(abandon);
    else if (selected !== null) this.#drawing.adjust((draft) => select(draft, null));
    else if (this.pairView.cursor.value !== null) this.pairView.cursor.set(null);
    else return false;
    return true;
  }

  takeProposal(): void {
    const proposal = this.#drawing.proposal.value;
    if (proposal === null) return this.app.say("The matcher has not answered yet, or you took or hid its landmarks.");
    if (proposal.landmarks.length === 0) return this.app.say("The matcher has no landmarks for this pair.");
    this.#drawing.edit((draft) => adopt(draft, proposal.landmarks));
    this.#drawing.proposal.set(null);
  }

  rejectProposal(): void {
    this.#drawing.proposal.set(null);
  }

  /** Make a landmark of the open point, with its partner there or where it is expected. */
  #complete(partner?: Point): void {
    const steered = (draft: Draft) => (partner === undefined ? draft : steer(draft, partner));
    const open = steered(this.#drawing.draft.value).open!;
    const where = this.snapping.whereabouts(open);
    this.#drawing.edit((draft) => complete(steered(draft)));
    this.#tell();
    this.snapping.snapNewest(other(open.side), where);
  }

  /** Have the cursor where the landmark began, so that arrow keys lead to the next one. */
  #goOnByKeys({ side, point }: Open): void {
    this.#drawing.adjust((draft) => select(draft, null));
    this.pairView.active.set(side);
    this.pairView.cursor.set({ side, point });
  }

  #restart(point: Point): void {
    const { open } = this.#drawing.draft.value;
    const knowledge = this.#drawing.knowledge.value;
    if (open === null || knowledge === null) return;
    const partner = open.steered ? open.partner : knowledge.predict(open.side, point).point;
    this.#drawing.adjust((draft) => ({ ...draft, open: { ...open, point, partner } }));
  }

  /** Return a step of the screen as one of the frame, which may be turned on it. */
  #inFrame(side: Side, direction: Point, pixels: number): Point {
    const frameFromScreen = invert(this.pairView.screenFrom(side));
    const origin = apply(frameFromScreen, { x: 0, y: 0 });
    const step = apply(frameFromScreen, direction);
    const length = Math.hypot(step.x - origin.x, step.y - origin.y);
    return { x: ((step.x - origin.x) * pixels) / length, y: ((step.y - origin.y) * pixels) / length };
  }

  #tell(): void {
    const count = this.#drawing.draft.value.landmarks.length;
    const { problem, errorPx } = this.#drawing.knowledge.value!;
    const error = errorPx === null ? "" : ` The predicted error is ${errorPx.toFixed(1)} px.`;
    this.app.voice.whisper(`Landmark ${count} set. ${problem ?? error}`);
  }
}
