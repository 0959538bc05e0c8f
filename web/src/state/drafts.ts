/** What was drawn and not confirmed, kept in the browser so that a reload loses no click. */
import type { Draft } from "../model/draft";
import type { GiveAnswer } from "../model/messages";

export class Drafts {
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
