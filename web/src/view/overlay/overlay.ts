/** The two frames in one: blink, swipe, difference. */
import type { Affine, Point } from "../../model/affine";
import { add, apply, invert, subtract } from "../../model/affine";
import type { Relation } from "../../model/relation";
import { watch } from "../../state/observable";
import { make } from "../make";
import type { Page } from "../page";
import { listenForGestures } from "../question/gestures";
import { laySheet, paintFrame, sheetLike, strokeVisibly, trace } from "../question/painting";
import { paintWarped } from "../question/warping";
import { PALETTE } from "../question/palette";
import { makeLayingBar } from "./laying";
import { prepare, Repainting } from "../question/repainting";

const BLINK_MS = 450;

interface Pictures {
  readonly i: ImageBitmap;
  readonly j: ImageBitmap;
}

/** Lay frame j, under the current map, over frame i on a canvas of its own. */
export function mountOverlay(host: HTMLElement, { app, pairView, laying }: Page): void {
  const canvas = make("canvas", { "aria-hidden": "true" });
  const caption = make("span", { class: "frame-label" });
  const range = { type: "range", min: 0, max: 1, step: 0.005, value: 0.5 };
  const slider = make("input", { ...range, "aria-label": "position of the swipe line" });
  const element = make("div", { class: "overlay", "data-testid": "overlay", hidden: true }, canvas, caption, slider, makeLayingBar(laying));
  host.append(element);
  let isJShown = false;
  let timer = 0;

  const repainting = new Repainting(() => {
    const { question } = app.drawing;
    const knowledge = app.drawing.knowledge.value;
    if (question === null || knowledge === null || element.hidden) return;
    const { pictures: known } = app;
    const [wholeI, wholeJ] = [known.ready(question.i), known.ready(question.j)];
    if (wholeI === null || wholeJ === null) return;
    const { fieldOfView, looks } = app.showing;
    const [i, j] = [fieldOfView.cut(looks.picture("i", wholeI)), fieldOfView.cut(looks.picture("j", wholeJ))];
    const { context, width, height } = prepare(canvas);
    const screenFromI = pairView.screenOfComparison({ width, height });
    const relation = laying.relation ?? knowledge.relation;
    const pictures = { i, j };
    const comparison = pairView.comparison.value;
    const flipped = isJShown !== pairView.isBlinking.value;
    if (comparison === "blink" && flipped) paintWarped(context, j, relation, screenFromI);
    if (comparison === "blink" && !flipped) paintFrame(context, i, screenFromI);
    if (comparison === "swipe") paintSwipe(context, pictures, relation, screenFromI, Number(slider.value));
    if (comparison === "difference") paintDifference(context, pictures, relation, screenFromI);
    trace(context, relation.outline("j"), screenFromI);
    strokeVisibly(context, PALETTE.j, 1);
    const shown = comparison === "blink" ? `: frame ${flipped ? question.j : question.i}` : "";
    const source = laying.isOn ? "hand" : knowledge.source === "landmarks" ? "landmarks and mosaic" : "mosaic";
    caption.textContent = `${comparison}${shown} · aligned by ${source}`;
    canvas.dataset["iFromJ"] = relation.iFromJ.join(",");
  });

  pairView.comparison.subscribe((comparison) => {
    element.hidden = comparison === "side by side";
    slider.hidden = comparison !== "swipe";
    window.clearInterval(timer);
    const isStill = matchMedia("(prefers-reduced-motion: reduce)").matches;
    // Where motion is not wanted, the person blinks by holding the key.
    if (comparison === "blink" && !isStill) {
      timer = window.setInterval(() => {
        isJShown = !isJShown;
        repainting.request();
      }, BLINK_MS);
    }
    repainting.request();
  });
  slider.addEventListener("input", () => repainting.request());
  new ResizeObserver(() => repainting.request()).observe(element);
  const { viewport, isBlinking } = pairView;
  const { looks } = app.showing;
  watch([viewport, isBlinking, laying.move, app.drawing.knowledge, app.question, looks.current], () => repainting.request());
  laying.move.subscribe((move) => element.classList.toggle("laying", move !== null));
  const planeAt = (place: Point) => {
    const { clientWidth: width, clientHeight: height } = element;
    return apply(invert(pairView.screenOfComparison({ width, height })), place);
  };
  /** Where the pointer was last. */
  let pointer: Point | null = null;
  const lay = (by: Point, isTurned: boolean) => {
    if (pointer === null) return;
    const [from, to] = [planeAt(pointer), planeAt(add(pointer, by))];
    if (isTurned) laying.drag(from, to);
    else laying.shift(subtract(to, from));
  };
  const swipeTo = (x: number) => {
    slider.value = String(x / element.clientWidth);
    repainting.request();
  };
  listenForGestures(
    element,
    {
      grab: () => null,
      onTap: ({ x }) => swipeTo(x),
      onGrabbed: () => undefined,
      onDrag: () => undefined,
      onDragEnd: () => undefined,
      onPan: (by, isShifted) => (laying.isOn ? lay(by, isShifted) : pairView.pan(by, "i", false)),
      onZoom: ({ x, y }, factor) => {
        const { width, height } = pairView.panel.value;
        // The same place seen from the middle, which is what the two sizes have in common.
        const at = { x: x - element.clientWidth / 2 + width / 2, y: y - element.clientHeight / 2 + height / 2 };
        pairView.zoom(factor, "i", at);
      },
      onHover: (place) => {
        pointer = place ?? pointer;
        if (place !== null && !laying.isOn && pairView.comparison.value === "swipe") swipeTo(place.x);
      },
    },
    () => ({ x: 0, y: 0 }),
  );
}

function paintSwipe(
  context: CanvasRenderingContext2D,
  { i, j }: Pictures,
  relation: Relation,
  screenFromI: Affine,
  share: number,
): void {
  const { clientWidth: width, clientHeight: height } = context.canvas;
  const x = share * width;
  paintFrame(context, i, screenFromI);
  context.save();
  context.beginPath();
  context.rect(x, 0, width - x, height);
  context.clip();
  paintWarped(context, j, relation, screenFromI);
  context.restore();
  context.beginPath();
  context.moveTo(x, 0);
  context.lineTo(x, height);
  strokeVisibly(context, "white", 2);
}

function paintDifference(
  context: CanvasRenderingContext2D,
  { i, j }: Pictures,
  relation: Relation,
  screenFromI: Affine,
): void {
  context.save();
  context.globalAlpha = 0.25;
  paintFrame(context, i, screenFromI);
  context.restore();
  // On a sheet of its own: only where both frames show the scene is there a difference.
  const sheet = sheetLike(context);
  paintFrame(sheet, i, screenFromI);
  sheet.globalCompositeOperation = "difference";
  paintWarped(sheet, j, relation, screenFromI);
  sheet.globalCompositeOperation = "destination-in";
  paintWarped(sheet, j, relation, screenFromI);
  paintFrame(sheet, i, screenFromI);
  laySheet(context, sheet);
  // Added to itself: small differences are what one looks for.
  context.save();
  context.globalCompositeOperation = "lighter";
  laySheet(context, sheet);
  context.restore();
}
