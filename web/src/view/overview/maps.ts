/** Maps of all pairs: overlap, informativeness, reward; they show the same pairs, side by side where there is room. */
import type { Point } from "../../model/affine";
import type { MapKind } from "../../model/messages";
import { bestPair, open, panMap, showAll, zoomMap } from "../../model/pairmap";
import type { App } from "../../state/app";
import { watch } from "../../state/observable";
import { watchGestures } from "../mosaic/gestures";
import { make } from "../make";
import { rem } from "../mosaic/rem";
import { makeSwitch } from "../mosaic/switches";
import { watchTheme } from "../mosaic/theme";
import { Chart } from "./chart";
import { makeKey } from "./key";
import { handleMapKeys } from "./mapkeys";
import { sayPointed } from "./reading";
import { firstMapState } from "./mapstate";

const KINDS: readonly { value: MapKind; words: string; title: string }[] = [
  { value: "overlap", words: "Overlap", title: "Probability that the frames overlap" },
  { value: "informativeness", words: "Uncertainty", title: "How uncertain the relative position of the two frames is" },
  { value: "reward", words: "Value of a question", title: "Expected gain of a question about the pair: the drop of the squared error" },
];

/** A view rests so long before it is fetched. */
const REST_MS = 140;
/** Rem across from which the maps stand side by side. */
const WIDE = 46;
const HINT = "Click a cell to show its pair.";

let mounted = 0;

export function mountMaps(host: HTMLElement, app: App): () => void {
  const mapState = firstMapState();
  const readout = make("p", { class: "readout", id: `map-readout-${mounted++}`, "aria-live": "polite" });
  const charts = KINDS.map(({ value, words }) => new Chart(value, words.toLowerCase(), app.api, mapState, readout.id));
  let kind: MapKind = "overlap";
  let timer = 0;
  let request = 0;

  const kinds = makeSwitch("Which map", KINDS, kind, (value) => {
    kind = value;
    layOut();
  });
  const fitButton = make("button", { type: "button", title: "Show all pairs (0)" }, "Fit");
  const row = make("div", { class: "charts" }, ...charts.map(({ figure }) => figure));
  const root = make("div", { class: "maps" }, make("header", {}, kinds, makeKey(), fitButton), row);
  row.append(readout);
  host.append(root);

  const sayError = (error: unknown) => app.say(error instanceof Error ? error.message : String(error), "warning");
  const seen = () => charts.filter(({ figure }) => !figure.hidden);

  const draw = () => {
    request ||= requestAnimationFrame(() => {
      request = 0;
      seen().forEach((chart) => chart.draw());
      readout.textContent = sayPointed(seen(), mapState) || HINT;
    });
  };
  const fetchSoon = () => {
    clearTimeout(timer);
    timer = setTimeout(() => {
      if (mapState.numbers.length === 0) return;
      for (const chart of seen()) chart.renew().then(draw, sayError);
    }, REST_MS);
  };
  const changed = () => {
    draw();
    fetchSoon();
  };

  const layOut = () => {
    const { clientWidth: width, clientHeight: height } = row;
    if (width === 0 || height === 0) return;
    const wide = width >= WIDE * rem();
    root.classList.toggle("wide", wide);
    // A legend stands below its map, or beside it where that leaves the map larger.
    const unit = rem();
    const below = Math.min(wide ? (width - 3 * unit) / 3 : width, height - (wide ? 6 : 4.7) * unit);
    const beside = wide ? 0 : Math.min(width - 9 * unit, height - 0.2 * unit);
    const side = Math.max(4 * unit, Math.floor(Math.max(below, beside)));
    root.classList.toggle("beside", beside > below);
    root.style.setProperty("--side", `${side}px`);
    charts.forEach((chart) => {
      chart.figure.hidden = !wide && chart.kind !== kind;
      chart.resize(side, beside > below ? width - side - unit : Math.min(side, 18 * unit));
    });
    changed();
  };

  const pairAt = (chart: Chart, at: Point) => {
    const { view, numbers } = mapState;
    const bound = (place: number) => Math.max(0, Math.min(numbers.length - 1, Math.floor(place)));
    const perPx = view.frames / chart.side;
    return { row: bound(view.row + at.y * perPx), column: bound(view.column + at.x * perPx) };
  };

  /** Look at the pair pointed at; in a cell of many pairs, at the one with the largest value. */
  const look = async (chart: Chart) => {
    const cell = mapState.pointed === null ? null : chart.cellAt(mapState.pointed.row, mapState.pointed.column);
    if (cell === null) return;
    const [row, column] = [cell.rows[0], cell.columns[0]];
    const frames = 1 + Math.max(cell.rows[1] - row, cell.columns[1] - column);
    const closely = () => app.api.pairMap(chart.kind, { row, column, frames, size: frames });
    const pair = frames === 1 ? [row, column] : bestPair(open(await closely()));
    if (pair === null || pair[0] === pair[1]) return app.say("This cell is a single frame. Choose a cell with two frames.");
    await app.look(mapState.numbers[Math.min(...pair)], mapState.numbers[Math.max(...pair)]);
  };
  const lookOrSay = (chart: Chart) => void look(chart).catch(sayError);

  const ends = charts.map((chart) => {
    handleMapKeys(chart, mapState, changed, () => lookOrSay(chart));
    return watchGestures(chart.canvas, {
      pan(dx, dy) {
        mapState.view = panMap(mapState.view, dx / chart.side, dy / chart.side, mapState.numbers.length);
        changed();
      },
      zoom(at, factor) {
        mapState.view = zoomMap(mapState.view, at.x / chart.side, at.y / chart.side, factor, mapState.numbers.length);
        changed();
      },
      tap(at) {
        mapState.pointed = pairAt(chart, at);
        draw();
        lookOrSay(chart);
      },
      hover(at) {
        if (mapState.numbers.length === 0) return;
        mapState.pointed = at === null ? null : pairAt(chart, at);
        draw();
      },
    });
  });
  fitButton.addEventListener("click", () => {
    mapState.view = showAll(mapState.numbers.length);
    changed();
  });

  const observer = new ResizeObserver(layOut);
  observer.observe(row);
  ends.push(
    watchTheme(root, (theme) => {
      mapState.theme = theme;
      draw();
    }),
    watch([app.mosaic], () => {
      const mosaic = app.mosaic.value;
      if (mosaic === null) return;
      if (mosaic.numbers.length !== mapState.numbers.length) mapState.view = showAll(mosaic.numbers.length);
      mapState.numbers = mosaic.numbers;
      mapState.placeOf = new Map(mosaic.numbers.map((number, place) => [number, place]));
      mapState.revision = mosaic.revision;
      changed();
    }),
    app.answers.subscribe((answers) => {
      mapState.answers = answers;
      draw();
    }),
    app.question.subscribe((question) => {
      mapState.question = question;
      draw();
    }),
    () => observer.disconnect(),
    () => clearTimeout(timer),
    () => cancelAnimationFrame(request),
  );
  return () => ends.forEach((end) => end());
}
