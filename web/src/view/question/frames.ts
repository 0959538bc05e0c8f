/** The two large frames side by side, and their comparison in one. */
import type { Affine } from "../../model/affine";
import { scaleOf } from "../../model/affine";
import { homographyOf, tangentAt } from "../../model/homography";
import { watch } from "../../state/observable";
import { mountLoupes } from "../loupe/loupe";
import { make } from "../make";
import { mountOverlay } from "../overlay/overlay";
import type { Page } from "../page";
import { makeCurvesBar } from "./curves";
import { Panel } from "./panel";
import { Repainting } from "./repainting";
import { makeTools } from "./tools";

/** Beyond this a frame counts as turned, radians, or as scaled, times. */
const TURNED = 0.05;

/** Put the frames into the element of the question; its attributes tell what is painted. */
export function mountFrames(host: HTMLElement, page: Page): void {
  const { app, pairView } = page;
  const panels = [new Panel(page, "i"), new Panel(page, "j")] as const;
  const hint = make(
    "p",
    { id: "frames-hint", class: "hidden keys" },
    "Arrow keys move the cursor. Space sets a landmark. In the other frame, Space accepts the expected place.",
  );
  const stage = make("div", { class: "frames" }, panels[0].element, panels[1].element, hint);
  host.append(makeTools(page), stage);

  let paintedQuestion: object | null = null;
  const repainting = new Repainting(() => {
    for (const panel of panels) panel.paint();
    const question = app.question.value;
    const isLaidOut = pairView.panel.value.width > 1;
    if (question === null || question === paintedQuestion || !isLaidOut) return;
    paintedQuestion = question;
    Object.assign(host.dataset, { i: question.i, j: question.j, revision: question.revision });
    // The pixels are on the screen once the browser has finished this frame.
    requestAnimationFrame(() => setTimeout(() => void app.showing.painted(question)));
  });

  new ResizeObserver(() => {
    const { clientWidth: width, clientHeight: height } = panels[0].element;
    if (width > 0 && height > 0) pairView.resize({ width, height });
    repainting.request();
  }).observe(panels[0].element);

  watch([pairView.viewport, pairView.panel, app.drawing.knowledge], () => panels.forEach((panel) => panel.publish()));
  const { draft, knowledge, proposal } = app.drawing;
  watch(
    [pairView.viewport, pairView.panel, pairView.cursor, pairView.isBlinking, app.question, draft, knowledge, proposal, app.showing.looks.current],
    () => repainting.request(),
  );
  pairView.moment.subscribe((moment) => {
    for (const panel of panels) panel.showMoment(moment[panel.side]);
    const question = app.question.value;
    if (question === null) return;
    for (const side of ["i", "j"] as const) {
      // A frame that cannot be had leaves its place empty; what was shown comes back with the next step.
      void app.pictures.load(question[side] + moment[side]).then(() => repainting.request(), () => undefined);
    }
    repainting.request();
  });
  app.showing.isSeen.subscribe((isSeen) => (host.dataset["seen"] = String(isSeen)));
  app.question.subscribe((question) => {
    host.hidden = question === null;
    if (question === null) return;
    panels[0].name(question.i, question.label_i, false);
    const { width, height } = app.drawing.frame;
    const expected = tangentAt(homographyOf(question.i_from_j), { x: width / 2, y: height / 2 });
    panels[1].name(question.j, question.label_j, isTurned(expected));
  });
  pairView.active.subscribe((side) => {
    for (const panel of panels) panel.element.classList.toggle("active", panel.side === side);
  });
  pairView.comparison.subscribe((comparison) => stage.classList.toggle("compared", comparison !== "side by side"));
  stage.append(makeCurvesBar(page.curves));
  page.curves.sketch.subscribe((sketch) => {
    stage.classList.toggle("drawing", sketch !== null);
    repainting.request();
  });
  mountOverlay(stage, page);
  mountLoupes(panels[0].element, panels[1].element, page);
}

function isTurned(iFromJ: Affine): boolean {
  const [a, b, , d, e] = iFromJ;
  return Math.abs(Math.atan2(d - b, a + e)) > TURNED || Math.abs(scaleOf(iFromJ) - 1) > TURNED;
}
