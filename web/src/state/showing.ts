/** The pair that is shown large: its pictures, what is drawn on it, and what is fetched while it is looked at. */
import type { Forecast, Question, State } from "../model/messages";
import type { Api } from "./api";
import type { Drafts } from "./drafts";
import { Drawing, isSamePair } from "./drawing";
import { FieldOfView } from "./fieldofview";
import { Looks } from "./looks";
import { Cell } from "./observable";
import { Pictures } from "./pictures";
import type { Voice } from "./voice";

/** A pair cannot be answered before it was on the screen for so long: two quick key presses are one answer. */
const SEEN_MS = 400;

export class Showing {
  readonly question = new Cell<Question | null>(null);
  readonly forecast = new Cell<Forecast | null>(null);
  /** From an answer until the next pair is shown: the one on the screen must not be answered twice. */
  readonly isAnswering = new Cell(false);
  /** Whether the program has said what it asks, or that it asks nothing. */
  readonly isAsked = new Cell(false);
  /** Whether a person can have seen the pair. */
  readonly isSeen = new Cell(false);
  readonly drawing = new Drawing();
  readonly pictures: Pictures;
  readonly fieldOfView: FieldOfView;
  readonly looks: Looks;

  #turn = 0;
  #since = 0;
  #proposed: Question | null = null;

  constructor(
    private readonly api: Api,
    private readonly voice: Voice,
  ) {
    this.pictures = new Pictures(api);
    this.fieldOfView = new FieldOfView(api);
    this.looks = new Looks(this.fieldOfView);
  }

  /** For how long the pair has been looked at. */
  get seconds(): number {
    return Math.min(1e6, (performance.now() - this.#since) / 1000);
  }

  /** Show a pair as soon as both pictures are there. */
  async show(question: Question | null, state: State | null, drafts: Drafts | null): Promise<void> {
    const turn = ++this.#turn;
    const field = state === null ? undefined : await this.fieldOfView.outline(state);
    if (turn !== this.#turn) return;
    if (question !== null) {
      const loaded = await Promise.allSettled([this.pictures.load(question.i), this.pictures.load(question.j)]);
      if (turn !== this.#turn) return;
      for (const one of loaded) if (one.status === "rejected") this.voice.say(String(one.reason.message), "warning");
    }
    if (!isSamePair(question, this.question.value)) {
      this.#since = performance.now();
      this.isSeen.set(false);
    }
    const { width, height, lens } = state ?? { width: 1, height: 1, lens: null };
    this.drawing.load(question, { width, height }, lens, drafts, field);
    this.question.set(question);
    this.isAsked.set(true);
  }

  /** The pair is on the screen: now there is time for what can wait. */
  painted(question: Question): Promise<void> {
    setTimeout(() => isSamePair(this.question.value, question) && this.isSeen.set(true), SEEN_MS);
    return this.voice.attempt(async () => {
      // What is asked of the program now would only keep the answer waiting.
      const isStill = () => isSamePair(this.question.value, question) && !this.isAnswering.value;
      const forecast = await this.api.forecast(question.i, question.j);
      if (!isStill()) return;
      this.forecast.set(forecast);
      // Asked once: one that was taken or hidden must not come back.
      if (isSamePair(this.#proposed, question)) return;
      this.#proposed = question;
      const proposal = await this.api.proposal(question.i, question.j);
      if (isStill()) this.drawing.proposal.set(proposal);
    });
  }
}
