/** What the views of the page share. */
import type { Application } from "../state/application";
import type { Curves } from "../state/curves";
import type { Finished } from "../state/finished";
import type { Hand } from "../state/hand";
import type { Laying } from "../state/laying";
import type { PairView } from "../state/pairview";
import type { Snapping } from "../state/snapping";

export interface Page {
  readonly app: Application;
  readonly pairView: PairView;
  readonly finished: Finished;
  readonly hand: Hand;
  readonly laying: Laying;
  readonly curves: Curves;
  readonly snapping: Snapping;
}
