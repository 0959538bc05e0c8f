/** The finished mosaic: what is known of it, and whether it is shown. */
import type { FinishedMosaic, Stage } from "../model/messages";
import { isReady } from "../model/stage";
import type { Application } from "./application";
import { Cell } from "./observable";

export class Finished {
  readonly mosaic = new Cell<FinishedMosaic | null>(null);
  readonly isShown = new Cell(false);

  /** The revision at which this page asked for the mosaic; null if it did not ask. */
  #asked: number | null = null;
  #stage: Stage | null = null;
  #isStarted = false;

  constructor(private readonly app: Application) {
    app.notice.subscribe((notice) => notice !== null && this.#follow(notice.stage));
    app.state.subscribe((state) => state !== null && this.#follow(state.stage));
  }

  /** Ask for the mosaic, and show it when it is made. */
  async make(): Promise<void> {
    this.#asked = this.app.state.value?.revision ?? null;
    await this.app.finish();
  }

  show(): void {
    if (this.mosaic.value !== null) this.isShown.set(true);
  }

  #follow(stage: Stage): void {
    const wasFinishing = this.#stage === "finishing";
    this.#stage = stage;
    if (wasFinishing && stage === "asking") void this.#fetch(true);
    else if (!this.#isStarted && isReady({ stage })) void this.#fetch(false);
  }

  async #fetch(isNew: boolean): Promise<void> {
    this.#isStarted = true;
    await this.app.voice.attempt(async () => {
      this.mosaic.set(await this.app.api.finished());
      // Whoever went on answering meanwhile is not interrupted; the note beside the question has a button.
      const isWaiting = this.#asked === this.app.state.value?.revision && !this.app.drawing.isTouched;
      if (isNew && this.#asked !== null && isWaiting) this.show();
      if (isNew) this.#asked = null;
    });
  }
}
