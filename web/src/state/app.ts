/** What views see of the application: values that announce their changes, and things to do. */
import type { AnswerRow, Contradiction, Forecast, LiveMosaic, Question, State } from "../model/messages";
import type { DatedPrediction } from "../model/prediction";
import type { Api } from "./api";
import type { Person } from "./person";

export interface Observable<T> {
  readonly value: T;
  /** Calls at once, and after every change; returns what ends it. */
  subscribe(listener: (value: T) => void): () => void;
}

export type Tone = "info" | "warning";

export interface App {
  readonly api: Api;
  readonly person: Person;
  readonly state: Observable<State | null>;
  /** Where the frames lie now; null while the sequence is prepared. */
  readonly mosaic: Observable<LiveMosaic | null>;
  /** The pair that is shown large. */
  readonly question: Observable<Question | null>;
  readonly forecast: Observable<Forecast | null>;
  /** The latest word on what further answers would bring; it comes after the state that it is about. */
  readonly prediction: Observable<DatedPrediction | null>;
  /** The answer that the person is asked about, because it contradicts the others. */
  readonly contradiction: Observable<Contradiction | null>;
  /** All answers; fetched while somebody subscribes. */
  readonly answers: Observable<readonly AnswerRow[]>;

  /** Show a pair large, whether or not it was suggested. */
  look(i: number, j: number): Promise<void>;
  /** Show the pair that the engine suggests. */
  next(): Promise<void>;
  remove(i: number, j: number): Promise<void>;
  undo(): Promise<void>;
  redo(): Promise<void>;
  /** Tell the person, on the screen and to a screen reader. */
  say(text: string, tone?: Tone): void;
}
