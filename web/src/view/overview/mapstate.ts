/** What the maps of all pairs have in common: which pairs are in view, and which one is pointed at. */
import type { AnswerRow, Question } from "../../model/messages";
import { showAll, type MapView } from "../../model/pairmap";
import type { Theme } from "../mosaic/theme";

export interface MapState {
  /** Frames of the source, by their places among the usable ones. */
  numbers: readonly number[];
  placeOf: ReadonlyMap<number, number>;
  revision: number;
  view: MapView;
  /** The pair that is pointed at, by places among the usable frames. */
  pointed: { row: number; column: number } | null;
  answers: readonly AnswerRow[];
  question: Question | null;
  theme: Theme;
}

export function firstMapState(): MapState {
  return {
    numbers: [],
    placeOf: new Map(),
    revision: -1,
    view: showAll(0),
    pointed: null,
    answers: [],
    question: null,
    theme: {} as Theme, // told at once by `watchTheme`
  };
}
