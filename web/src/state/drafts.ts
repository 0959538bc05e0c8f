/** What was drawn and not confirmed, kept in the browser so that a reload loses no click. */
import type { Draft } from "../model/draft";
import type { GiveAnswer } from "../model/messages";

/** A change of the answers: the revision after it, and the pair that it is about. */
export interface Change {
  readonly revision: number;
  readonly i: number | null;
  readonly j: number | null;
}

const MOST_REMEMBERED = 50;

export class Drafts {
  readonly #tab = crypto.randomUUID?.() ?? String(Math.random());

  constructor(
    private readonly storage: Storage,
    private readonly project: string,
    /** Called where the browser keeps nothing: its storage is full or forbidden. */
    private readonly onRefused: () => void = () => {},
  ) {}

  keep(i: number, j: number, draft: Draft): void {
    this.#write(this.#key("draft", i, j), draft);
  }

  read(i: number, j: number): Draft | null {
    return this.#read<Draft>(this.#key("draft", i, j));
  }

  forget(i: number, j: number): void {
    this.storage.removeItem(this.#key("draft", i, j));
  }

  /** Keep an answer until the program has said that it is on disk. */
  keepUnsent(answer: GiveAnswer): void {
    this.#write(this.#key("unsent"), answer);
  }

  readUnsent(): GiveAnswer | null {
    return this.#read<GiveAnswer>(this.#key("unsent"));
  }

  forgetUnsent(): void {
    this.storage.removeItem(this.#key("unsent"));
  }

  /** Tell the other tabs of this browser what this one changes, so that they do not take it for somebody else's. */
  noteChange(change: Change): void {
    this.#write(this.#key("changes"), [...this.#changes().slice(1 - MOST_REMEMBERED), { ...change, tab: this.#tab }]);
  }

  /** Whether another tab of this browser changed a pair, or any, after one revision and up to another. */
  isOtherTab(since: number, until: number, pair: { i: number; j: number } | null = null): boolean {
    return this.#changes().some(({ revision, i, j, tab }) => {
      const isThen = revision > since && revision <= until && tab !== this.#tab;
      return isThen && (pair === null || (i === pair.i && j === pair.j));
    });
  }

  #changes(): (Change & { tab: string })[] {
    return this.#read<(Change & { tab: string })[]>(this.#key("changes")) ?? [];
  }

  #key(kind: string, ...pair: number[]): string {
    return ["smalti", kind, this.project, ...pair].join(":");
  }

  #write(key: string, value: unknown): void {
    try {
      this.storage.setItem(key, JSON.stringify(value));
    } catch {
      // It must not stop the drawing; it only means that a reload starts anew.
      this.onRefused();
    }
  }

  #read<T>(key: string): T | null {
    const text = this.storage.getItem(key);
    if (text === null) return null;
    try {
      return JSON.parse(text) as T;
    } catch {
      this.storage.removeItem(key);
      return null;
    }
  }
}
