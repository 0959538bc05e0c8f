/** The application: what is known, what is shown, and everything that one can do. */
import type {
  AnswerRow,
  Contradiction,
  Forecast,
  GiveAnswer,
  LiveMosaic,
  Notice,
  Outcome,
  Question,
  State,
  Verdict,
} from "../model/messages";
import type { DatedPrediction } from "../model/prediction";
import { isOpen, isReady } from "../model/stage";
import type { Api } from "./api";
import { ConflictError } from "./api";
import type { App, Observable, Tone } from "./app";
import { Drafts } from "./drafts";
import type { Drawing } from "./drawing";
import { isSamePair } from "./drawing";
import { Cell, FetchedCell } from "./observable";
import type { Pictures } from "./pictures";
import { Person } from "./person";
import { Sender } from "./sending";
import { Showing } from "./showing";
import { Voice } from "./voice";

/** An answer that somebody else's crossed. */
export interface AnswerConflict {
  readonly conflict: ConflictError["conflict"];
  readonly mine: GiveAnswer;
  /** Both are of this browser, from two tabs. */
  readonly isOwn: boolean;
}

/** A program that takes longer to snap landmarks gets them as they were set. */
const LONGEST_WAIT_MS = 3000;

export class Application implements App {
  readonly state = new Cell<State | null>(null);
  readonly notice = new Cell<Notice | null>(null);
  readonly prediction = new Cell<DatedPrediction | null>(null);
  readonly mosaic = new Cell<LiveMosaic | null>(null);
  readonly answers = new FetchedCell<readonly AnswerRow[]>([], () => this.#fetchAnswers());
  readonly contradiction = new Cell<Contradiction | null>(null);
  readonly answerConflict = new Cell<AnswerConflict | null>(null);
  /** The pair that the person wanted to look at last. */
  readonly picked = new Cell<Question | null>(null);
  readonly voice = new Voice();
  readonly person: Person;
  readonly showing: Showing;
  readonly question: Observable<Question | null>;
  readonly forecast: Observable<Forecast | null>;
  readonly isAnswering: Cell<boolean>;
  readonly drawing: Drawing;
  readonly pictures: Pictures;
  readonly sender: Sender;

  #drafts: Drafts | null = null;
  #isStale = false;
  #isWarned = false;
  #refreshing: Promise<void> | null = null;

  constructor(
    readonly api: Api,
    private readonly storage: Storage,
  ) {
    this.person = new Person(storage);
    this.sender = new Sender(api);
    this.showing = new Showing(api, this.voice);
    this.question = this.showing.question;
    this.forecast = this.showing.forecast;
    this.isAnswering = this.showing.isAnswering;
    this.drawing = this.showing.drawing;
    this.pictures = this.showing.pictures;
  }

  /** Ask for the state, and for all that follows where it is new; one asking at a time. */
  async refresh(): Promise<void> {
    this.#isStale = true;
    this.#refreshing ??= this.#refreshWhileStale().finally(() => (this.#refreshing = null));
    return this.#refreshing;
  }

  /** Take word from the program. */
  hear(notice: Notice): void {
    this.notice.set(notice);
    if (notice.prediction !== null) this.prediction.set({ ...notice.prediction, revision: notice.revision });
    const state = this.state.value;
    if (isReady(notice)) this.sender.wake();
    if (state !== null && notice.stage === state.stage && !isNews(notice, state)) return;
    if (!this.sender.isBusy) void this.refresh();
  }

  look(i: number, j: number): Promise<void> {
    return this.voice.attempt(async () => {
      const question = await this.api.pair(Math.min(i, j), Math.max(i, j));
      this.picked.set(question);
      await this.#show(question);
    });
  }

  next(): Promise<void> {
    return this.voice.attempt(async () => this.#show(await this.api.question(this.person.name.value)));
  }

  /** Answer the pair that is shown. */
  give(verdict: Verdict): Promise<void> {
    const question = this.question.value;
    if (question === null || this.isAnswering.value) return Promise.resolve();
    const { i, j, is_known, revision } = question;
    const { seconds } = this.showing;
    const person = this.person.name.value;
    const answer = { i, j, verdict, reason: "", seconds, person, is_known, seen_revision: revision };
    const drawn = this.drawing.draft.value.landmarks;
    if (verdict !== "yes") return this.send({ ...answer, landmarks: [] });
    if (this.drawing.snapping.value === 0) return this.send({ ...answer, landmarks: [...drawn] });
    this.isAnswering.set(true);
    return this.#untilSnapped().then(() => {
      // Somebody may have gone to another pair meanwhile.
      const landmarks = isSamePair(this.drawing.question, question) ? this.drawing.draft.value.landmarks : drawn;
      return this.send({ ...answer, landmarks: [...landmarks] });
    });
  }

  /** Send an answer; `again`: it may have arrived before. */
  send(answer: GiveAnswer, again = false): Promise<void> {
    const { question, draft } = this.drawing;
    const drawn = isSamePair(question, answer) ? draft.value.landmarks : (answer.landmarks ?? []);
    this.isAnswering.set(true);
    return this.voice.attempt(async () => {
      try {
        const outcome = await this.sender.give(answer, this.#drafts!, again);
        this.drawing.settle(answer.i, answer.j, drawn);
        if (outcome === "theirs is the same") {
          // Not awaited: this may be a part of a refresh.
          void this.refresh();
          await this.next();
        } else await this.#accept(outcome);
      } catch (error) {
        if (!(error instanceof ConflictError)) throw error;
        this.state.set(error.conflict.state);
        const { conflict } = error;
        const isOwn = this.#drafts!.isOtherTab(answer.seen_revision, conflict.state.revision, answer);
        this.answerConflict.set({ conflict, mine: answer, isOwn });
      } finally {
        this.isAnswering.set(false);
      }
    });
  }

  /** Settle a conflict: keep the other answer, or replace it by mine. */
  async resolve(whose: "theirs" | "mine"): Promise<void> {
    const answerConflict = this.answerConflict.value;
    if (answerConflict === null) return;
    this.answerConflict.set(null);
    const { mine, conflict } = answerConflict;
    if (whose === "mine") return this.send({ ...mine, seen_revision: conflict.state.revision });
    this.drawing.settle(mine.i, mine.j, []);
    void this.#fetchMosaic();
    await this.next();
  }

  remove(i: number, j: number): Promise<void> {
    return this.#write((seen) => this.api.remove({ i, j, seen_revision: seen }));
  }

  undo(): Promise<void> {
    this.contradiction.set(null);
    return this.#write((seen) => this.api.undo({ seen_revision: seen }));
  }

  redo(): Promise<void> {
    return this.#write((seen) => this.api.redo({ seen_revision: seen }));
  }

  finish(): Promise<void> {
    return this.voice.attempt(async () => {
      const state = this.state.value;
      if (state === null || state.stage !== "asking") return;
      this.state.set(await this.api.finish({ seen_revision: state.revision }));
      this.say("Smalti now makes the mosaic and the report. You can still answer.");
    });
  }

  say(text: string, tone?: Tone): void {
    this.voice.say(text, tone);
  }

  async #refreshWhileStale(): Promise<void> {
    while (this.#isStale) {
      this.#isStale = false;
      await this.voice.attempt(async () => {
        const before = this.state.value;
        const state = await this.api.state();
        // Sending ends with a state of its own, which is newer.
        if (this.sender.isBusy) return;
        this.state.set(state);
        if (!isOpen(state)) return;
        // The folder is known only once the project is open.
        this.#drafts ??= new Drafts(this.storage, state.folder, () => this.#warnOfStorage());
        if (before === null || !isOpen(before)) await this.#open();
        else if (isNews(before, state)) await this.#followOthers(before, state);
      });
    }
  }

  async #open(): Promise<void> {
    this.answers.renew();
    // After a restart of the program somebody may be in the middle of a pair.
    const showing = this.question.value !== null && this.drawing.isTouched ? null : this.next();
    await Promise.all([this.#fetchMosaic(), showing]);
    const unsent = this.#drafts?.readUnsent() ?? null;
    if (unsent === null) return;
    this.say(`The answer on frames ${unsent.i} and ${unsent.j} was not saved last time. It is sent again.`);
    await this.send(unsent, true);
  }

  /** Somebody else, or the matcher, has answered: follow, but leave alone what the person is drawing. */
  async #followOthers(before: State, state: State): Promise<void> {
    void this.#fetchMosaic();
    this.answers.renew();
    const shown = this.question.value;
    const isMatcher = state.counts.by_person === before.counts.by_person && state.queue === "doubtful";
    const byMatcher = state.stopped == null ? "The matcher gave answers." : `The matcher has stopped: ${state.stopped}.`;
    const isOwn = this.#drafts?.isOtherTab(before.revision, state.revision) === true;
    const who = isOwn ? "You changed the answers in another tab." : "Another person changed the answers.";
    const news = isMatcher ? byMatcher : who;
    if (this.drawing.isTouched) return isMatcher ? undefined : this.say(`${news} Your drawing is kept.`);
    const isPicked = shown !== null && !shown.suggested;
    const newer = isPicked ? await this.api.pair(shown.i, shown.j) : await this.api.question(this.person.name.value);
    if (this.drawing.isTouched || this.sender.isBusy || this.question.value !== shown) return;
    if (newer !== null && !isSamePair(newer, shown)) this.say(`${news} Here is the next question.`);
    await this.#show(newer);
  }

  #write(act: (seen_revision: number) => Promise<Outcome>): Promise<void> {
    return this.voice.attempt(async () => {
      const state = this.state.value;
      if (state === null || this.sender.isBusy) return;
      try {
        this.#drafts?.noteChange({ revision: state.revision + 1, i: null, j: null });
        await this.#accept(await this.sender.during(() => act(state.revision)));
      } catch (error) {
        if (!(error instanceof ConflictError)) throw error;
        this.say(error.conflict.explanation, "warning");
        await this.refresh();
      }
    });
  }

  async #accept({ state, question, contradiction, done }: Outcome): Promise<void> {
    this.state.set(state);
    if (contradiction != null) this.contradiction.set(contradiction);
    // A contradiction says more.
    if (contradiction == null) this.say(done);
    else this.voice.announcement.set(null);
    void this.#fetchMosaic();
    this.answers.renew();
    await this.#show(question);
    const heard = this.notice.value;
    if (heard !== null && heard.revision >= state.revision && isNews(heard, state)) void this.refresh();
  }

  /** Wait until landmarks are snapped, so that the same clicks give the same answer however fast they come. */
  async #untilSnapped(): Promise<void> {
    let end: () => void = () => undefined;
    const snapped = new Promise<void>((resolve) => {
      end = this.drawing.snapping.subscribe((count) => count === 0 && resolve());
    });
    await Promise.race([snapped, new Promise((resolve) => setTimeout(resolve, LONGEST_WAIT_MS))]);
    end();
  }

  /** Say once that a reload would lose what is drawn. */
  #warnOfStorage(): void {
    if (this.#isWarned) return;
    this.#isWarned = true;
    this.say("The browser cannot store data. If you reload, landmarks that you have not confirmed are lost.", "warning");
  }

  #show(question: Question | null): Promise<void> {
    return this.showing.show(question, this.state.value, this.#drafts);
  }

  async #fetchMosaic(): Promise<void> {
    await this.voice.attempt(async () => this.mosaic.set(await this.api.mosaic()));
  }

  async #fetchAnswers(): Promise<void> {
    const state = this.state.value;
    if (state === null || !isOpen(state)) return;
    await this.voice.attempt(async () => this.answers.set(await this.api.answers()));
  }
}

/** Whether the answers are others, or the matcher's turn has begun or ended: its end may bring a question. */
function isNews(now: Notice | State, before: State): boolean {
  return now.revision !== before.revision || now.working !== before.working;
}
