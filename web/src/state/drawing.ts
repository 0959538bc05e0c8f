/** The landmarks of the pair that is shown: what is drawn, what follows from it, and the way back. */
import type { Draft } from "../model/draft";
import { draftOf, drawnAlike, EMPTY } from "../model/draft";
import type { Knowledge } from "../model/knowledge";
import { knowledgeOf } from "../model/knowledge";
import type { Landmark, LensNumbers, Proposal, Question } from "../model/messages";
import type { Polygon, Size } from "../model/polygon";
import { outlineOf } from "../model/polygon";
import type { Drafts } from "./drafts";
import { Cell } from "./observable";

export class Drawing {
  readonly draft = new Cell<Draft>(EMPTY);
  readonly knowledge = new Cell<Knowledge | null>(null);
  readonly proposal = new Cell<Proposal | null>(null);
  /** What the program would say to these landmarks: that they contradict what is known. */
  readonly warning = new Cell<string | null>(null);
  /** How many times the program is asked now to snap landmarks. */
  readonly snapping = new Cell(0);

  #question: Question | null = null;
  #frame: Size = { width: 1, height: 1 };
  #lens: LensNumbers | null = null;
  #field: Polygon = [];
  #drafts: Drafts | null = null;
  #first: Draft = EMPTY;
  #before: Draft[] = [];
  #after: Draft[] = [];
  /** Answers given from this page, so that an undo brings their landmarks back. */
  readonly #given = new Map<string, readonly Landmark[]>();

  get question(): Question | null {
    return this.#question;
  }

  get frame(): Size {
    return this.#frame;
  }

  /** Begin a pair with what was drawn on it before: not confirmed, taken back, or answered. */
  load(
    question: Question | null,
    frame: Size,
    lens: LensNumbers | null,
    drafts: Drafts | null,
    field: Polygon = outlineOf(frame),
  ): void {
    const goesOn = question !== null && isSamePair(question, this.#question) && this.isTouched;
    this.#question = question;
    this.#frame = frame;
    this.#lens = lens;
    this.#field = field;
    this.#drafts = drafts;
    if (goesOn) return this.#draw(this.draft.value);
    const answered = question?.answer?.landmarks ?? [];
    const kept = question === null ? null : this.#kept(question, drafts);
    this.#first = draftOf(answered);
    this.#before = [];
    this.#after = [];
    this.proposal.set(null);
    this.warning.set(null);
    this.#draw(kept ?? this.#first);
  }

  /** Whether something would be lost if another pair were shown. */
  get isTouched(): boolean {
    return !drawnAlike(this.draft.value, this.#first);
  }

  /** Change what is drawn, in one step that can be undone. */
  edit(change: (draft: Draft) => Draft): void {
    const before = this.draft.value;
    const after = change(before);
    if (!drawnAlike(before, after)) this.remember();
    this.adjust(() => after);
  }

  /** Change what is drawn as a part of the step that `remember` began. */
  adjust(change: (draft: Draft) => Draft): void {
    const before = this.draft.value;
    const after = change(before);
    if (drawnAlike(before, after)) this.draft.set(after);
    else this.#draw(after);
  }

  remember(): void {
    this.#before.push(this.draft.value);
    this.#after = [];
  }

  get canUndo(): boolean {
    return this.#before.length > 0;
  }

  get canRedo(): boolean {
    return this.#after.length > 0;
  }

  undo(): void {
    this.#step(this.#before, this.#after);
  }

  redo(): void {
    this.#step(this.#after, this.#before);
  }

  /** The pair is answered: nothing of it is left to lose. */
  settle(i: number, j: number, landmarks: readonly Landmark[]): void {
    this.#given.set(keyOf({ i, j }), landmarks);
    this.#drafts?.forget(i, j);
    if (this.#question?.i === i && this.#question.j === j) {
      this.#first = this.draft.value;
      this.#before = [];
      this.#after = [];
    }
  }

  /** Give up what was drawn on the pair that is shown. */
  discard(): void {
    if (this.#question === null) return;
    this.#drafts?.forget(this.#question.i, this.#question.j);
    this.#before = [];
    this.#after = [];
    this.#draw(this.#first);
  }

  #kept(question: Question, drafts: Drafts | null): Draft | null {
    const given = question.answer === null ? this.#given.get(keyOf(question)) : undefined;
    return drafts?.read(question.i, question.j) ?? (given === undefined ? null : draftOf(given));
  }

  #step(from: Draft[], to: Draft[]): void {
    const draft = from.pop();
    if (draft === undefined) return;
    to.push(this.draft.value);
    this.#draw(draft);
  }

  #draw(draft: Draft): void {
    const question = this.#question;
    const { landmarks } = draft;
    const knowledge = question && knowledgeOf(question, landmarks, this.#frame, this.#lens, this.#field);
    // Both before either is announced: who hears of one reads the other.
    const announcements = [this.draft.place(draft), this.knowledge.place(knowledge)];
    for (const announce of announcements) announce?.();
    if (question === null) return;
    if (this.isTouched) this.#drafts?.keep(question.i, question.j, draft);
    else this.#drafts?.forget(question.i, question.j);
  }
}

export function isSamePair(one: { i: number; j: number } | null, two: { i: number; j: number } | null): boolean {
  return one !== null && two !== null && one.i === two.i && one.j === two.j;
}

function keyOf({ i, j }: { i: number; j: number }): string {
  return `${i}-${j}`;
}
