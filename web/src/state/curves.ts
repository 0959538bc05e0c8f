/** Drawing along a vessel in both frames; the program finds the vessel under the strokes. */
import type { Point } from "../model/affine";
import { ellipseOf } from "../model/covariance";
import type { Stroke } from "../model/curve";
import { adoptCurve, determinedWords, expectedStroke, lengthOf, SHORTEST_PX } from "../model/curve";
import { select } from "../model/draft";
import { other } from "../model/knowledge";
import type { Side } from "../model/messages";
import { contains } from "../model/polygon";
import { px } from "../model/words";
import { RefusedError, UnreachableError } from "./api";
import type { Application } from "./application";
import { isSamePair } from "./drawing";
import { Cell } from "./observable";
import type { PairView } from "./pairview";

/** The strokes so far; `first` is the side that was drawn on first. */
export interface Sketch {
  readonly first: Side | null;
  readonly strokes: Readonly<Record<Side, Stroke>>;
}

const NOTHING: Sketch = { first: null, strokes: { i: [], j: [] } };

export class Curves {
  /** Null while nothing is drawn along. */
  readonly sketch = new Cell<Sketch | null>(null);
  readonly isTracing = new Cell(false);
  /** What was said last of the drawing. */
  #hint = "";

  constructor(
    private readonly app: Application,
    private readonly pairView: PairView,
  ) {
    let shown = app.question.value;
    app.question.subscribe((question) => {
      if (!isSamePair(question, shown)) this.end();
      shown = question;
    });
    pairView.comparison.subscribe((comparison) => comparison !== "side by side" && this.end());
  }

  get isOn(): boolean {
    return this.sketch.value !== null;
  }

  toggle(): void {
    if (this.isOn) return void this.end();
    if (this.app.drawing.question === null) return;
    this.pairView.comparison.set("side by side");
    this.pairView.backInTime();
    this.app.drawing.adjust((draft) => select(draft, null));
    this.sketch.set(NOTHING);
    this.#tell("Draw along a vessel in one frame: drag, or click from bend to bend. Then draw along it in the other frame.");
  }

  /** Stop drawing, and forget the strokes; false where nothing is drawn along. */
  end(): boolean {
    const was = this.isOn;
    this.sketch.set(null);
    const { announcement } = this.app.voice;
    if (was && announcement.value?.text === this.#hint) announcement.set(null);
    return was;
  }

  /** Begin a stroke anew in a frame, or go on with it. */
  draw(side: Side, point: Point, isFirst: boolean): void {
    const sketch = this.sketch.value;
    if (sketch === null || this.isTracing.value || !contains(this.app.drawing.frame, point)) return;
    this.pairView.active.set(side);
    const stroke = isFirst ? [point] : [...sketch.strokes[side], point];
    const first = sketch.first ?? side;
    this.sketch.set({ first, strokes: { ...sketch.strokes, [side]: stroke } });
  }

  /** Add a corner to the stroke of a frame. */
  tap(side: Side, point: Point): void {
    if (this.isTracing.value) return;
    if (!contains(this.app.drawing.frame, point)) return this.app.say("This place is outside of the frame.");
    this.draw(side, point, false);
    const isSecond = this.sketch.value!.first !== side;
    const then = isSecond ? "Enter finds the vessel" : "then draw along the vessel in the other frame";
    this.#tell(`Click along the vessel to its end; ${then}.`);
  }

  /** A stroke was drawn in one go. */
  lift(side: Side): void {
    const sketch = this.sketch.value;
    if (sketch === null) return;
    if (lengthOf(sketch.strokes[side]) < SHORTEST_PX) {
      this.#take(side);
      return this.#tell(`This stroke is too short: draw along at least ${SHORTEST_PX} px of the vessel.`);
    }
    if (this.#isDrawn(other(side))) return void this.#trace();
    this.#tell("Now draw along the same vessel in the other frame, or press Enter to take the expected place.");
  }

  /** Find the vessel; in a frame without a stroke, where the other frame's stroke is expected. */
  finish(): void {
    const sketch = this.sketch.value;
    if (sketch === null || this.isTracing.value) return;
    if (sketch.first === null || !this.#isDrawn(sketch.first)) return this.#tell("Draw along a vessel in one frame first.");
    const second = other(sketch.first);
    if (!this.#isDrawn(second)) {
      const expected = this.expected(second);
      if (lengthOf(expected) < SHORTEST_PX) return this.#tell("The vessel is expected outside of the other frame. Draw another one.");
      this.sketch.set({ ...sketch, strokes: { ...sketch.strokes, [second]: expected } });
    }
    void this.#trace();
  }

  /** Take back the last stroke; false where there is none. */
  undo(): boolean {
    const sketch = this.sketch.value;
    if (sketch === null || sketch.first === null || this.isTracing.value) return false;
    const second = other(sketch.first);
    this.#take(sketch.strokes[second].length > 0 ? second : sketch.first);
    return true;
  }

  /** Return where the first stroke is expected in a frame; nothing where none is. */
  expected(side: Side): Stroke {
    const sketch = this.sketch.value;
    const knowledge = this.app.drawing.knowledge.value;
    if (sketch === null || knowledge === null || sketch.first !== other(side)) return [];
    return expectedStroke(knowledge.relation, sketch.first, sketch.strokes[sketch.first], this.app.drawing.frame);
  }

  async #trace(): Promise<void> {
    const { drawing, api } = this.app;
    const { question } = drawing;
    const knowledge = drawing.knowledge.value;
    const sketch = this.sketch.value;
    if (question === null || knowledge === null || sketch === null || this.isTracing.value) return;
    this.isTracing.set(true);
    try {
      const { iFromJ } = knowledge.relation;
      const [stroke_i, stroke_j] = (["i", "j"] as const).map((side) => sketch.strokes[side].map(({ x, y }) => [x, y]));
      const isKnown = question.joined || knowledge.source === "landmarks";
      const middle = sketch.strokes.j[Math.floor(sketch.strokes.j.length / 2)]!;
      const sigma_px = isKnown ? Math.max(0.1, ellipseOf(knowledge.predict("j", middle).covariance).along) : null;
      const i_from_j = iFromJ.map((entry) => entry / iFromJ[8]);
      const { i, j } = question;
      const found = await api.trace({ i, j, stroke_i: stroke_i!, stroke_j: stroke_j!, i_from_j, sigma_px });
      if (!isSamePair(question, drawing.question) || this.sketch.value !== sketch) return;
      if (!found.found) return this.#tellOfFailure(found.reason);
      this.sketch.set(null);
      drawing.edit((draft) => adoptCurve(draft, found.landmarks));
      const determined = determinedWords(drawing.draft.value.landmarks, drawing.knowledge.value!);
      this.app.say(`The vessel is found in both frames; the two lines differ by ${px(found.distance_px)} px. ${determined}`);
    } catch (error) {
      if (!(error instanceof RefusedError || error instanceof UnreachableError)) throw error;
      this.#tellOfFailure(error.message);
    } finally {
      this.isTracing.set(false);
    }
  }

  #isDrawn(side: Side): boolean {
    return lengthOf(this.sketch.value?.strokes[side] ?? []) >= SHORTEST_PX;
  }

  /** Take the stroke of a frame away. */
  #take(side: Side): void {
    const sketch = this.sketch.value!;
    const first = sketch.first === side ? null : sketch.first;
    this.sketch.set({ first, strokes: { ...sketch.strokes, [side]: [] } });
  }

  #tell(hint: string): void {
    this.#hint = hint;
    this.app.say(hint);
  }

  #tellOfFailure(reason: string): void {
    this.app.say(`Nothing moved: ${reason.replace(/\.?$/, ".")}`, "warning");
  }
}
