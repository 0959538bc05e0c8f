/** All marks above the frames, in their order. */
import type { Scale } from "../../model/colour";
import type { AnswerRow, LiveMosaic, Question } from "../../model/messages";
import { centreOf, unconfirmedPlaces } from "../../model/mosaic";
import type { Size } from "../../model/polygon";
import { drawAnswers, drawCrosshair, drawNumber, drawOutline, drawParts, type Label, type Plane } from "./marks";
import type { Theme } from "./theme";

export type Mode = "picture" | "uncertainty" | "answers";

/** What is marked, and how. */
export interface Overlay {
  mode: Mode;
  theme: Theme;
  /** Of the uncertainty's colours. */
  sigma: Scale;
  question: Question | null;
  answers: readonly AnswerRow[];
  picked: readonly number[];
  pointed: number | null;
  crosshair: boolean;
}

/** Of the outlines of frames that depend on a single match, CSS px. */
const DASH = [6, 5];

/** How much of the ground covers the frames beneath lines. */
const VEIL = 0.55;

export function drawOverlay(
  context: CanvasRenderingContext2D,
  plane: Plane,
  mosaic: LiveMosaic,
  overlay: Overlay,
  screen: Size,
): void {
  const { theme, question } = overlay;
  const placeOf = new Map(mosaic.numbers.map((number, place) => [number, place]));
  if (overlay.mode === "answers") {
    context.globalAlpha = VEIL;
    context.fillStyle = theme.ground;
    context.fillRect(0, 0, screen.width, screen.height);
    context.globalAlpha = 1;
    drawAnswers(context, plane, overlay.answers, placeOf, theme);
  }
  if (overlay.mode === "uncertainty") {
    for (const place of unconfirmedPlaces(mosaic)) drawOutline(context, plane, place, theme.warn, theme.surface, DASH);
  }
  for (const number of [...overlay.picked, overlay.pointed]) {
    const place = number === null ? undefined : placeOf.get(number);
    if (place !== undefined) drawOutline(context, plane, place, theme.accent, theme.surface);
  }
  const numbers = question === null ? [] : drawQuestion(context, plane, question, placeOf, theme, screen);
  drawParts(context, plane, mosaic.parts, theme, numbers);
  if (overlay.crosshair) drawCrosshair(context, screen, theme);
}

function drawQuestion(
  context: CanvasRenderingContext2D,
  plane: Plane,
  question: Question,
  placeOf: ReadonlyMap<number, number>,
  theme: Theme,
  screen: Size,
): Label[] {
  const [i, j] = [placeOf.get(question.i), placeOf.get(question.j)];
  const sides = [
    { place: i, other: j, number: question.i, colour: theme.frameI },
    { place: j, other: i, number: question.j, colour: theme.frameJ },
  ];
  for (const { place, colour } of sides) {
    if (place !== undefined) drawOutline(context, plane, place, colour, theme.surface);
  }
  const labels = sides.map(({ place, other, number, colour }) => {
    if (place === undefined) return null;
    const away = centreOf(plane.quads, other ?? place);
    return drawNumber(context, plane, place, String(number), { paper: colour, ink: theme.surface }, away, screen);
  });
  return labels.filter((label) => label !== null);
}
