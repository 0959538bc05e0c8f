/** Sends answers and says whether they are on disk; an answer that cannot be sent is kept and sent again. */
import type { Given, GiveAnswer, Outcome } from "../model/messages";
import type { Observable } from "./app";
import type { Api } from "./api";
import { ConflictError, RefusedError, UnreachableError } from "./api";
import type { Drafts } from "./drafts";
import { Cell } from "./observable";

export type Saving = { kind: "saved" } | { kind: "saving" } | { kind: "waiting"; seconds: number };

const FIRST_PAUSE_SECONDS = 1;
const LONGEST_PAUSE_SECONDS = 30;

export class Sender {
  readonly #saving = new Cell<Saving>({ kind: "saved" });
  #sending = 0;
  #wake: () => void = () => undefined;

  constructor(
    private readonly api: Api,
    private readonly pause: (seconds: number) => Promise<void> = sleep,
  ) {}

  get saving(): Observable<Saving> {
    return this.#saving;
  }

  get isBusy(): boolean {
    return this.#sending > 0;
  }

  /** End a pause: the program is there again. */
  wake(): void {
    this.#wake();
  }

  /** Send an answer until it has arrived; a conflict or a refusal ends it. `again`: it may have arrived before. */
  async give(answer: GiveAnswer, drafts: Drafts, again = false): Promise<Outcome | "theirs is the same"> {
    drafts.keepUnsent(answer);
    const { i, j, seen_revision } = answer;
    // Before it is sent: other tabs may hear of it before this one.
    drafts.noteChange({ revision: seen_revision + 1, i, j });
    return this.during(async () => {
      for (let pause = FIRST_PAUSE_SECONDS; ; pause = Math.min(2 * pause, LONGEST_PAUSE_SECONDS)) {
        try {
          const outcome = await this.api.give(answer);
          drafts.forgetUnsent();
          drafts.noteChange({ revision: outcome.state.revision, i, j });
          return outcome;
        } catch (error) {
          if (isAway(error)) {
            again = true;
            this.#saving.set({ kind: "waiting", seconds: pause });
            await Promise.race([this.pause(pause), new Promise<void>((resolve) => (this.#wake = resolve))]);
            this.#saving.set({ kind: "saving" });
            continue;
          }
          drafts.forgetUnsent();
          // The first attempt may have arrived although its acknowledgement did not.
          const hasArrived = again && error instanceof ConflictError && isSame(error.conflict.theirs, answer);
          if (hasArrived) return "theirs is the same";
          throw error;
        }
      }
    });
  }

  /** Do something that writes, and say "saving" meanwhile. */
  async during<T>(work: () => Promise<T>): Promise<T> {
    this.#sending += 1;
    this.#saving.set({ kind: "saving" });
    try {
      return await work();
    } finally {
      this.#sending -= 1;
      if (this.#sending === 0) this.#saving.set({ kind: "saved" });
    }
  }
}

/** Whether the program may take the same answer a little later: it is not there, or still opening the project. */
function isAway(error: unknown): boolean {
  return error instanceof UnreachableError || (error instanceof RefusedError && error.status === 503);
}

function isSame(theirs: Given | null, mine: GiveAnswer): boolean {
  if (theirs === null || theirs.verdict !== mine.verdict) return false;
  // The program may have left one out for checking.
  const place = ({ x_i, y_i, x_j, y_j, active, check }: Given["landmarks"][number]) => [x_i, y_i, x_j, y_j, active || check];
  return JSON.stringify(theirs.landmarks.map(place)) === JSON.stringify((mine.landmarks ?? []).map(place));
}

function sleep(seconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 1000 * seconds));
}
