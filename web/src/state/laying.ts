/** Laying one frame over the other by hand, and having all pixels finish it. */
import type { Affine, Point } from "../model/affine";
import { compose, IDENTITY, translation } from "../model/affine";
import { adopt } from "../model/draft";
import { laid, landmarksOf, turnAbout, turnFromTo } from "../model/laying";
import type { Landmark } from "../model/messages";
import type { Relation } from "../model/relation";
import { RefusedError, UnreachableError } from "./api";
import type { Application } from "./application";
import { isSamePair } from "./drawing";
import { Cell } from "./observable";
import type { PairView } from "./pairview";

/** A step of the keys. */
const TURN = Math.PI / 360;
const SCALE = 1.01;

export class Laying {
  /** Where frame j has been moved to, on the plane of frame i; null while none is laid. */
  readonly move = new Cell<Affine | null>(null);
  readonly isAligning = new Cell(false);
  /** What was said when the laying began. */
  #hint = "";
  /** The frames were side by side before. */
  #wasSideBySide = false;

  constructor(
    private readonly app: Application,
    private readonly pairView: PairView,
  ) {
    let shown = app.question.value;
    app.question.subscribe((question) => {
      if (!isSamePair(question, shown)) this.end();
      shown = question;
    });
    pairView.comparison.subscribe((comparison) => comparison === "side by side" && this.end());
  }

  get isOn(): boolean {
    return this.move.value !== null;
  }

  /** How the frames lie as they are laid now; null while none is laid. */
  get relation(): Relation | null {
    const knowledge = this.app.drawing.knowledge.value;
    const move = this.move.value;
    return knowledge === null || move === null ? null : laid(knowledge.relation, move);
  }

  /** Whether the frames can be aligned from where they are expected: no landmark is set, and their place is known. */
  get canBegin(): boolean {
    const { landmarks, open } = this.app.drawing.draft.value;
    return landmarks.length === 0 && open === null && this.app.question.value?.joined === true;
  }

  /** Align by all pixels from the expected place. Where that fails, the frame stays laid, to be moved by hand. */
  async alignExpected(): Promise<void> {
    this.toggle();
    await this.align();
  }

  toggle(): void {
    if (this.isOn) return void this.end();
    const { question } = this.app.drawing;
    if (question === null) return;
    this.#wasSideBySide = this.pairView.comparison.value === "side by side";
    if (this.#wasSideBySide) this.pairView.comparison.set("difference");
    this.move.set(IDENTITY);
    // Fingers have no Shift; there the buttons turn and scale.
    const turning = matchMedia("(pointer: coarse)").matches ? "the buttons turn and scale it" : "with Shift, dragging turns and scales it";
    this.#hint = `Lay frame ${question.j} over frame ${question.i}: drag it; ${turning}. Then "align by all pixels" does the rest.`;
    this.app.say(this.#hint);
  }

  /** Stop laying, forget where the frame was laid, and show the frames as before; false where none is laid. */
  end(): boolean {
    const was = this.isOn;
    this.move.set(null);
    if (was && this.#wasSideBySide) this.pairView.comparison.set("side by side");
    const { announcement } = this.app.voice;
    if (was && announcement.value?.text === this.#hint) announcement.set(null);
    return was;
  }

  shift(by: Point): void {
    this.#add(translation(by.x, by.y));
  }

  /** Turn and scale frame j about its middle, as a pointer goes from one place of the plane to another. */
  drag(from: Point, to: Point): void {
    const turn = turnFromTo(this.#middle(), from, to);
    if (turn !== null) this.#add(turn);
  }

  turn(steps: number): void {
    this.#add(turnAbout(this.#middle(), steps * TURN));
  }

  scale(steps: number): void {
    this.#add(turnAbout(this.#middle(), 0, SCALE ** steps));
  }

  /** Take the frame as it is laid: an answer without texture. */
  keep(): void {
    const relation = this.relation;
    if (relation === null || this.isAligning.value) return;
    const landmarks = landmarksOf(relation);
    if (landmarks.length === 0) return this.app.say("The frames do not overlap as they are laid.", "warning");
    this.#take(landmarks);
    this.app.say("Landmarks say where the frame is laid, ± 3 px each. Confirm the answer, or go on.");
  }

  /** Align by all pixels from where the frame is laid. */
  async align(): Promise<void> {
    const relation = this.relation;
    const question = this.app.drawing.question;
    if (relation === null || question === null || this.isAligning.value) return;
    this.isAligning.set(true);
    try {
      const scale = relation.iFromJ[8];
      const i_from_j = relation.iFromJ.map((entry) => entry / scale);
      const found = await this.app.api.align({ i: question.i, j: question.j, i_from_j });
      if (!isSamePair(question, this.app.drawing.question) || !this.isOn) return;
      if (found.verdict !== "yes") return this.#tellOfFailure(found.reason);
      this.#take(found.landmarks);
      this.app.say(`Aligned by all pixels: ${found.reason}. Look at the comparison, then confirm.`);
    } catch (error) {
      if (!(error instanceof RefusedError || error instanceof UnreachableError)) throw error;
      this.#tellOfFailure(error.message);
    } finally {
      this.isAligning.set(false);
    }
  }

  #take(landmarks: readonly Landmark[]): void {
    this.move.set(null);
    this.app.drawing.edit((draft) => adopt(draft, landmarks));
  }

  #tellOfFailure(reason: string): void {
    const why = reason.replace(/\.?$/, ".");
    this.app.say(`Not aligned: ${why} Lay the frame more closely, or use it as it is.`, "warning");
  }

  #add(then: Affine): void {
    const { value } = this.move;
    if (value !== null && !this.isAligning.value) this.move.set(compose(then, value));
  }

  #middle(): Point {
    const { width, height } = this.app.drawing.frame;
    return this.relation!.seen("j", { x: (width - 1) / 2, y: (height - 1) / 2 });
  }
}
