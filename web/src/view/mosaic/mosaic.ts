/** The mosaic, live: every frame where it lies now, moving when an answer moves it. */
import "../../style/mosaic.css";
import type { Point } from "../../model/affine";
import { chooseScale } from "../../model/colour";
import { describeUnconfirmed, framesAt } from "../../model/mosaic";
import { planeFromScreen } from "../../model/mosaicview";
import { plural } from "../../model/words";
import type { App } from "../../state/app";
import { watch } from "../../state/observable";
import { watchGestures } from "./gestures";
import { handleKeys } from "./keys";
import { makeAnswerLegend, makeColourBar } from "./legend";
import { make } from "../make";
import type { Mode, Overlay } from "./overlay";
import { mountPicker, type Here } from "./picker";
import { rem } from "./rem";
import { Stage } from "./stage";
import { makeSwitch } from "./switches";
import { watchTheme, type Theme } from "./theme";

const HELP = "Arrow keys move, plus and minus zoom, 0 shows all, Enter lists the frames in the middle.";

export function mountMosaic(host: HTMLElement, app: App): () => void {
  const canvas = make("canvas", { class: "plane", tabindex: 0, role: "application", "data-testid": "mosaic" });
  const legend = make("div", { class: "legend" });
  const empty = make("p", { class: "empty" }, "The mosaic appears when all frames are registered.");
  const fitButton = make("button", { type: "button", class: "quiet", title: "Show all (0)" }, "Fit");
  const root = make("div", { class: "mosaic" });
  const body = make("div", { class: "body" }, canvas, legend, empty);

  const overlay: Overlay = {
    mode: "picture",
    theme: {} as Theme, // known before anything is drawn: `watchTheme` tells at once
    sigma: chooseScale([]),
    question: null,
    answers: [],
    picked: [],
    pointed: null,
    crosshair: false,
  };
  const stage = new Stage(canvas, app, () => overlay);
  const modes = makeSwitch<Mode>("The mosaic shows", MODES, "picture", (mode) => {
    overlay.mode = mode;
    followAnswers();
    renderLegend();
    stage.redraw();
  });
  root.append(make("header", {}, modes, fitButton), body);
  host.append(root);

  const picker = mountPicker(
    body,
    (i, j) => void app.look(i, j),
    () => {
      [overlay.picked, overlay.pointed] = [picker.picked, picker.pointed];
      stage.redraw();
    },
    () => canvas.focus(),
  );

  const listFrames = (at: Point, focus: boolean) => {
    const { mosaic, quads, view } = stage.scene;
    if (mosaic === null) return;
    const here = framesAt(quads, planeFromScreen(view, at), stage.mask).map((place): Here => {
      const draw = (thumbnail: HTMLCanvasElement) => stage.drawThumbnail(place, thumbnail);
      const [sigma, confirmed] = [mosaic.sigma_px[place], mosaic.confirmed[place]];
      return { number: mosaic.numbers[place], sigma, confirmed, draw };
    });
    if (here.length === 0 && !focus) picker.close();
    else picker.open(here, at.x > 0.55 * stage.screen.width ? "left" : "right", focus);
  };

  const renderLegend = () => {
    const { mosaic } = stage.scene;
    legend.replaceChildren();
    stage.scene.reserve(0);
    if (mosaic === null || overlay.mode === "picture") return;
    const width = Math.min(16 * rem(), stage.screen.width - 2 * rem());
    if (overlay.mode === "answers") legend.append(makeAnswerLegend());
    else {
      const unconfirmed = describeUnconfirmed(mosaic);
      legend.append(makeColourBar("uncertainty, px", overlay.sigma, width));
      if (unconfirmed !== null) legend.append(make("p", { "data-testid": "unconfirmed" }, unconfirmed));
    }
    stage.scene.reserve(legend.offsetHeight + 4);
  };

  let stopAnswers = () => {};
  const followAnswers = () => {
    // All answers are fetched only while they are shown.
    stopAnswers();
    stopAnswers = () => {};
    if (overlay.mode !== "answers") return;
    stopAnswers = app.answers.subscribe((answers) => {
      overlay.answers = answers;
      stage.redraw();
    });
  };

  const setCrosshair = () => {
    overlay.crosshair = canvas.matches(":focus-visible");
    stage.redraw();
  };
  canvas.addEventListener("focus", setCrosshair);
  canvas.addEventListener("blur", setCrosshair);
  fitButton.addEventListener("click", () => {
    stage.scene.showAll();
    stage.redraw();
  });
  handleKeys(
    stage,
    () => listFrames({ x: stage.screen.width / 2, y: stage.screen.height / 2 }, true),
    () => picker.letGo(),
  );

  const ends = [
    watchTheme(root, (theme) => {
      overlay.theme = theme;
      stage.repaint();
    }),
    watchGestures(canvas, {
      pan(dx, dy) {
        stage.scene.pan(dx, dy);
        stage.redraw();
      },
      zoom(at, factor) {
        stage.scene.zoom(at, factor);
        stage.redraw();
      },
      tap: (at) => listFrames(at, false),
    }),
    watch([app.state, app.mosaic], () => {
      const [state, mosaic] = [app.state.value, app.mosaic.value];
      empty.hidden = mosaic !== null;
      if (state === null || mosaic === null) return;
      stage.show(state, mosaic.numbers);
      overlay.sigma = chooseScale(mosaic.sigma_px);
      stage.scene.take(mosaic, { width: state.width, height: state.height }, state.lens, performance.now());
      const parts = new Set(mosaic.parts).size;
      const apart = parts > 1 ? `, in ${parts} separate parts` : "";
      canvas.setAttribute("aria-label", `Mosaic of ${plural(mosaic.numbers.length, "frame")}${apart}. ${HELP}`);
      renderLegend();
      stage.redraw();
    }),
    app.question.subscribe((question) => {
      overlay.question = question;
      stage.redraw();
    }),
    () => stopAnswers(),
    () => stage.stop(),
    () => root.remove(),
  ];
  return () => ends.forEach((end) => end());
}

const MODES = [
  { value: "picture", words: "Picture" },
  { value: "uncertainty", words: "Uncertainty", title: "Colour shows how uncertain the position of each frame is" },
  { value: "answers", words: "Answers", title: "Lines join the frames of answered pairs" },
] as const;
