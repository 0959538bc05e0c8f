/** What the page tells the person: on the screen, to a screen reader, and when something was refused. */
import { RefusedError, UnreachableError } from "./api";
import type { Tone } from "./app";
import { Cell } from "./observable";

export interface Announcement {
  readonly text: string;
  readonly tone: Tone;
}

export class Voice {
  readonly announcement = new Cell<Announcement | null>(null);
  /** For a screen reader alone. */
  readonly whispered = new Cell("");
  /** Whether the program answers. */
  readonly connected = new Cell(true);

  say(text: string, tone: Tone = "info"): void {
    this.announcement.set({ text, tone });
  }

  whisper(text: string): void {
    this.whispered.set(text);
  }

  /** Do what may be refused, and say so where it is. */
  async attempt(work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      if (error instanceof UnreachableError) this.connected.set(false);
      else if (!(error instanceof RefusedError)) throw error;
      this.say(error.message.replace(/\.?$/, "."), "warning");
    }
  }
}
