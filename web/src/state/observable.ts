/** Values that announce their changes. */
import type { Observable } from "./app";

export class Cell<T> implements Observable<T> {
  readonly #listeners = new Set<(value: T) => void>();
  #value: T;

  constructor(value: T) {
    this.#value = value;
  }

  get value(): T {
    return this.#value;
  }

  set(value: T): void {
    this.place(value)?.();
  }

  /** Take a value without a word; returns what announces it, or null where it is the same. */
  place(value: T): (() => void) | null {
    if (Object.is(value, this.#value)) return null;
    this.#value = value;
    // A copy, because a listener may end its own subscription.
    return () => [...this.#listeners].forEach((listener) => listener(this.#value));
  }

  subscribe(listener: (value: T) => void): () => void {
    this.#listeners.add(listener);
    listener(this.#value);
    return () => this.#listeners.delete(listener);
  }

  get isWatched(): boolean {
    return this.#listeners.size > 0;
  }
}

/** A value that is fetched only while somebody looks at it. */
export class FetchedCell<T> extends Cell<T> {
  #isStale = true;

  constructor(
    value: T,
    private readonly fetch: () => Promise<void>,
  ) {
    super(value);
  }

  /** The value has changed at its source. */
  renew(): void {
    this.#isStale = true;
    this.#fetchIfWatched();
  }

  override subscribe(listener: (value: T) => void): () => void {
    const end = super.subscribe(listener);
    this.#fetchIfWatched();
    return end;
  }

  #fetchIfWatched(): void {
    if (!this.#isStale || !this.isWatched) return;
    this.#isStale = false;
    void this.fetch();
  }
}

/** Call `listener` whenever one of several values changes, once at the beginning. */
export function watch(sources: readonly Observable<unknown>[], listener: () => void): () => void {
  let ready = false;
  const ends = sources.map((source) => source.subscribe(() => ready && listener()));
  ready = true;
  listener();
  return () => ends.forEach((end) => end());
}
