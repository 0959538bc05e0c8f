/** What the views of the page share. */
import type { Application } from "../state/application";
import type { Hand } from "../state/hand";
import type { Sight } from "../state/sight";
import type { Snapping } from "../state/snapping";

export interface Page {
  readonly app: Application;
  readonly sight: Sight;
  readonly hand: Hand;
  readonly snapping: Snapping;
}
