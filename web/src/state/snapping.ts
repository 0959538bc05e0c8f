/** Snapping: landmarks moved to where the frames correlate best, as the program finds it. */
import type { Covariance } from "../model/covariance";
import { ellipseOf, round, sigmasOf } from "../model/covariance";
import type { Open } from "../model/draft";
import { complete, move, steer } from "../model/draft";
import { other } from "../model/knowledge";
import type { Landmark, Side, Snapped } from "../model/messages";
import { pointOf, SIGMA_PX } from "../model/pose";
import { plural } from "../model/words";
import { RefusedError, UnreachableError } from "./api";
import type { Application } from "./application";
import { Cell } from "./observable";
import type { PairView } from "./pairview";

const KEY = "smalti:snapping";

/** Both points of a landmark were clicked. */
const CLICKED: Covariance = round(2 * SIGMA_PX.clicked ** 2);

/** Half axes of the ellipse in which a landmark may be snapped without a word, and which the page shows. */
const SIGMAS = 2;

/** How far the program looks around a point, px. */
const LEAST_RADIUS = 12;
const LARGEST_RADIUS = 60;

export class Snapping {
  /** Landmarks are snapped as soon as they are set. */
  readonly isAutomatic: Cell<boolean>;
  #isRunning = false;

  constructor(
    private readonly app: Application,
    private readonly pairView: PairView,
    private readonly storage: Storage,
  ) {
    this.isAutomatic = new Cell(storage.getItem(KEY) !== "off");
  }

  /** Snap landmarks by themselves, or no longer; the browser remembers it. */
  toggle(): void {
    const on = !this.isAutomatic.value;
    this.isAutomatic.set(on);
    try {
      this.storage.setItem(KEY, on ? "on" : "off");
    } catch {
      // Where the browser keeps nothing, it holds until the page is closed.
    }
    this.app.say(on ? "Landmarks snap by themselves." : "Landmarks stay where you set them.");
  }

  /** Return how uncertain the partner of an open point is. */
  whereabouts({ side, point, steered }: Open): Covariance {
    const knowledge = this.app.drawing.knowledge.value;
    return steered || knowledge === null ? CLICKED : knowledge.predict(side, point).covariance;
  }

  /** Snap the landmark that was set last, where that is sure and near; otherwise it stays without a word. */
  snapNewest(moving: Side, where: Covariance): void {
    const { landmarks } = this.app.drawing.draft.value;
    const number = landmarks.length;
    const landmark = landmarks[number - 1];
    if (!this.isAutomatic.value || landmark === undefined) return;
    void this.#attempt(async () => {
      const snapped = await this.#ask(landmark, moving, radiusOf(where));
      const from = pointOf(landmark, moving);
      const isNear = sigmasOf(where, { x: snapped.x - from.x, y: snapped.y - from.y }) <= SIGMAS;
      if (!snapped.found || !isNear || !this.#take(landmark, moving, snapped)) return;
      this.app.voice.whisper(`Landmark ${number} snapped.`);
    });
  }

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
    const snapped = await this.#ask(landmark, moving, radiusOf(this.whereabouts(open)));
    if (draft.value.open !== open) return;
    if (!snapped.found) return this.app.say(leftWords(snapped.reason), "warning");
    this.app.drawing.edit((before) => {
      const after = complete(steer(before, snapped));
      return move(after, after.landmarks.length - 1, moving, snapped, "snapped");
    });
    this.app.say(snappedWords(snapped.correlation));
  }

  async #snapLandmark(landmark: Landmark, moving: Side): Promise<Snapped> {
    const snapped = await this.#ask(landmark, moving, LEAST_RADIUS);
    if (snapped.found) this.#take(landmark, moving, snapped);
    return snapped;
  }

  /** Move a landmark; false where the person has moved or deleted it meanwhile: their word is the later one. */
  #take(landmark: Landmark, moving: Side, snapped: Snapped): boolean {
    const index = this.app.drawing.draft.value.landmarks.indexOf(landmark);
    if (index < 0) return false;
    this.app.drawing.edit((draft) => move(draft, index, moving, snapped, "snapped"));
    return true;
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
      const failure = await this.#attempt(work);
      if (failure !== null) this.app.say(leftWords(failure), "warning");
    } finally {
      this.#isRunning = false;
    }
  }

  /** Do what an answer has to wait for. Return why the program did not do it, or null. */
  async #attempt(work: () => Promise<void> | void): Promise<string | null> {
    const { snapping } = this.app.drawing;
    snapping.set(snapping.value + 1);
    try {
      await work();
      return null;
    } catch (error) {
      if (!(error instanceof RefusedError || error instanceof UnreachableError)) throw error;
      return error.message;
    } finally {
      snapping.set(snapping.value - 1);
    }
  }
}

function radiusOf(where: Covariance): number {
  return Math.min(LARGEST_RADIUS, Math.max(LEAST_RADIUS, ellipseOf(where, SIGMAS).along));
}

function snappedWords(correlation: number): string {
  return `Snapped. The correlation of the frames is ${correlation.toFixed(2)} there.`;
}

function leftWords(reason: string): string {
  return `Not snapped: ${reason}`.replace(/\.?$/, ".");
}
