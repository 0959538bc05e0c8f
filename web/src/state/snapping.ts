/** Snapping: landmarks moved to where the frames correlate best, as the program finds it. */
import { complete, move, steer } from "../model/draft";
import { other } from "../model/knowledge";
import type { Landmark, Side, Snapped } from "../model/messages";
import { plural } from "../model/words";
import { RefusedError, UnreachableError } from "./api";
import type { Application } from "./application";
import type { Hand } from "./hand";
import type { PairView } from "./pairview";

export class Snapping {
  #isRunning = false;

  constructor(
    private readonly app: Application,
    private readonly pairView: PairView,
    private readonly hand: Hand,
  ) {}

  /** Snap the partner of the open point, or else the selected landmark. */
  snap(): Promise<void> {
    return this.#alone(async () => {
      const { open, selected, landmarks } = this.app.drawing.draft.value;
      if (open !== null) return this.#snapOpen();
      const landmark = landmarks[selected ?? landmarks.length - 1];
      if (landmark?.origin === "traced") return this.app.say("A vessel is snapped already.");
      if (landmark === undefined) return this.app.say("Set or select a landmark first, then snap it.");
      const { found, correlation, reason } = await this.#snapLandmark(landmark, this.pairView.active.value);
      this.app.say(found ? snappedWords(correlation) : leftWords(reason), found ? "info" : "warning");
    });
  }

  snapAll(): Promise<void> {
    return this.#alone(async () => {
      const { landmarks } = this.app.drawing.draft.value;
      const waiting = landmarks.filter(({ active, origin }) => active && origin !== "snapped" && origin !== "traced");
      if (waiting.length === 0) return this.app.say("All landmarks are snapped already.");
      const results = [];
      for (const landmark of waiting) results.push(await this.#snapLandmark(landmark, "j"));
      const refused = results.filter(({ found }) => !found);
      const moved = `Snapped ${results.length - refused.length} of ${plural(results.length, "landmark")}.`;
      if (refused.length === 0) this.app.say(moved);
      else this.app.say(`${moved} ${leftWords(refused[0]!.reason)}`, "warning");
    });
  }

  async #snapOpen(): Promise<void> {
    const { draft } = this.app.drawing;
    const open = draft.value.open!;
    const moving = other(open.side);
    const [i, j] = moving === "j" ? [open.point, open.partner] : [open.partner, open.point];
    const landmark: Landmark = { x_i: i.x, y_i: i.y, x_j: j.x, y_j: j.y, origin: "clicked", active: true, check: false, sigma_px: null, along_deg: null, curve: null };
    const snapped = await this.#ask(landmark, moving, this.hand.searchRadius());
    if (draft.value.open !== open) return;
    if (!snapped.found) return this.app.say(leftWords(snapped.reason), "warning");
    this.app.drawing.edit((before) => {
      const after = complete(steer(before, snapped));
      return move(after, after.landmarks.length - 1, moving, snapped, "snapped");
    });
    this.app.say(snappedWords(snapped.correlation));
  }

  async #snapLandmark(landmark: Landmark, moving: Side): Promise<Snapped> {
    const snapped = await this.#ask(landmark, moving, 12);
    const index = this.app.drawing.draft.value.landmarks.indexOf(landmark);
    // Moved or deleted in the meantime: the person's word is the later one.
    if (snapped.found && index >= 0) this.app.drawing.edit((draft) => move(draft, index, moving, snapped, "snapped"));
    return snapped;
  }

  #ask({ x_i, y_i, x_j, y_j }: Landmark, moving: Side, radius: number): Promise<Snapped> {
    const { i, j } = this.app.drawing.question!;
    const i_from_j = [...this.app.drawing.knowledge.value!.relation.tangent("j", { x: x_j, y: y_j })];
    return this.app.api.snap({ i, j, x_i, y_i, x_j, y_j, moving, i_from_j, radius });
  }

  async #alone(work: () => Promise<void> | void): Promise<void> {
    if (this.#isRunning || this.app.drawing.question === null) return;
    this.#isRunning = true;
    try {
      await work();
    } catch (error) {
      if (!(error instanceof RefusedError || error instanceof UnreachableError)) throw error;
      this.app.say(leftWords(error.message), "warning");
    } finally {
      this.#isRunning = false;
    }
  }
}

function snappedWords(correlation: number): string {
  return `Snapped. The correlation of the frames is ${correlation.toFixed(2)} there.`;
}

function leftWords(reason: string): string {
  return `Not snapped: ${reason}`.replace(/\.?$/, ".");
}
