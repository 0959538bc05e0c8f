/** The last view: the finished mosaic over the whole window, before and after, its report and its files. */
import type { FinishedMosaic } from "../../model/messages";
import { keyName } from "../../model/keys";
import { plural, px } from "../../model/words";
import { watch } from "../../state/observable";
import { makeFormatLinks } from "../export/menu";
import { make } from "../make";
import type { Page } from "../page";
import { makeKeyButton } from "../shell/button";
import type { Shown } from "./stage";
import { Stage } from "./stage";

const STEP_PX = 80;

export function mountFinished(host: HTMLElement, page: Page): void {
  const { app, finished } = page;
  const dialog = make("dialog", { class: "finished", "aria-label": "the finished mosaic", "data-testid": "finished" });
  host.append(dialog);
  let end: () => void = () => undefined;
  dialog.addEventListener("close", () => {
    end();
    end = () => undefined;
    finished.isShown.set(false);
  });
  watch([finished.isShown, finished.mosaic], () => {
    const mosaic = finished.mosaic.value;
    if (!finished.isShown.value || mosaic === null) return dialog.close();
    end();
    const view = makeView(mosaic, page, dialog);
    end = view.end;
    if (!dialog.open) dialog.showModal();
    view.focus();
  });
  app.voice.connected.subscribe((connected) => dialog.toggleAttribute("data-away", !connected));
}

function makeView(
  mosaic: FinishedMosaic,
  { app }: Page,
  dialog: HTMLDialogElement,
): { end: () => void; focus: () => void } {
  const status = make("p", { class: "finished-status", "data-testid": "finished-status" });
  const remark = make("p", { class: "finished-remark", role: "status" });
  const stage = new Stage(
    mosaic,
    app.api,
    (shown) => {
      status.textContent = statusOf(shown);
      stage.canvas.dataset["complete"] = String(shown.isComplete);
    },
    () => (remark.textContent = "A part of the picture is missing. Press “stop here” on the page to make it again."),
  );
  const compare = makeComparison(mosaic, stage);
  const button = (text: string, key: string, act: () => void, title: string) =>
    makeKeyButton({ text, key, title, class: "quiet", act });
  const isFull = () => document.fullscreenElement === dialog;
  const full = () => void (isFull() ? document.exitFullscreen() : dialog.requestFullscreen());
  const close = makeKeyButton({ text: "back", key: "Escape", class: "primary", act: () => dialog.close() });
  const tools = make(
    "div",
    { class: "finished-tools", role: "group", "aria-label": "what is shown" },
    button("fit", "0", () => stage.fit(), "show the whole mosaic"),
    button("100 %", "1", () => stage.actual(), "full resolution: one pixel of the mosaic on one of the screen"),
    button("zoom in", "+", () => stage.zoom(1.5), "zoom in"),
    button("zoom out", "-", () => stage.zoom(1 / 1.5), "zoom out"),
    button("full screen", "f", full, "the whole screen, and back"),
  );
  dialog.replaceChildren(
    make(
      "div",
      { class: "finished-head" },
      make("div", {}, make("h2", {}, "The finished mosaic"), make("p", {}, describe(mosaic))),
      close,
    ),
    stage.canvas,
    compare.divider,
    status,
    make("div", { class: "finished-bar" }, tools, compare.element),
    make("div", { class: "finished-files" }, ...makeFiles(mosaic, app, remark), remark),
  );
  dialog.onkeydown = (event) => {
    const pan = { ArrowLeft: [1, 0], ArrowRight: [-1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[event.key];
    if (event.target instanceof HTMLInputElement) return;
    const acts: Record<string, () => void> = {
      "0": () => stage.fit(),
      "1": () => stage.actual(),
      "+": () => stage.zoom(1.5),
      "=": () => stage.zoom(1.5),
      "-": () => stage.zoom(1 / 1.5),
      f: full,
      b: () => compare.hold(true),
    };
    const act = pan === undefined ? acts[keyName(event)] : () => stage.pan({ x: STEP_PX * pan[0]!, y: STEP_PX * pan[1]! });
    if (act === undefined) return;
    event.preventDefault();
    act();
  };
  dialog.onkeyup = (event) => {
    if (event.key.toLowerCase() === "b") compare.hold(false);
  };
  return { end: () => stage.end(), focus: () => stage.canvas.focus() };
}

/** A slider that moves the border between before and now; a key or a button held down shows the one before. */
function makeComparison(mosaic: FinishedMosaic, stage: Stage) {
  const slider = make("input", { type: "range", min: 0, max: 1000, value: 0, "data-testid": "before-slider" });
  slider.setAttribute("aria-label", "how much of the width shows the mosaic before your answers");
  const hold = makeKeyButton({ text: "hold: before", key: "b", class: "quiet", act: () => undefined });
  const handle = make("span", { class: "handle", "data-testid": "before-handle" }, "before | now");
  const divider = make("div", { class: "finished-divider", "aria-hidden": "true", hidden: true }, handle);
  let isHeld = false;
  const show = () => {
    const share = isHeld ? 1 : slider.valueAsNumber / 1000;
    stage.divide(share);
    divider.hidden = share <= 0 || share >= 1;
    divider.style.setProperty("--share", String(share));
  };
  const set = (held: boolean) => {
    isHeld = held;
    hold.setAttribute("aria-pressed", String(held));
    show();
  };
  slider.addEventListener("input", show);
  handle.addEventListener("pointerdown", (event) => handle.setPointerCapture(event.pointerId));
  handle.addEventListener("pointermove", (event) => {
    if (!handle.hasPointerCapture(event.pointerId)) return;
    const { left, width } = stage.canvas.getBoundingClientRect();
    // Not to the very end: there the line would be gone.
    slider.valueAsNumber = Math.min(980, Math.max(20, (1000 * (event.clientX - left)) / width));
    show();
  });
  hold.addEventListener("pointerdown", () => set(true));
  for (const kind of ["pointerup", "pointercancel", "pointerleave"] as const) {
    hold.addEventListener(kind, () => isHeld && set(false));
  }
  hold.addEventListener("blur", () => isHeld && set(false));
  const element =
    mosaic.before === null
      ? make("p", {}, "The chain alone makes no mosaic to compare with.")
      : make(
          "div",
          { class: "finished-compare", role: "group", "aria-label": "before and now" },
          make("span", {}, "before (the chain alone):"),
          slider,
          hold,
        );
  return { element, divider, hold: (held: boolean) => mosaic.before !== null && held !== isHeld && set(held) };
}

function makeFiles(mosaic: FinishedMosaic, app: Page["app"], remark: HTMLElement): HTMLElement[] {
  const report = mosaic.files.some(({ name }) => name === "report.html");
  const formats = makeFormatLinks(app);
  for (const link of formats) {
    link.addEventListener("click", () => {
      remark.textContent = "Smalti makes the file. The download begins when it is ready; a large mosaic takes minutes.";
      menu.removeAttribute("open");
    });
  }
  const menu = make(
    "details",
    { class: "export", "data-testid": "finished-export" },
    make("summary", { class: "button" }, "export"),
    make("div", { class: "menu" }, ...formats),
  );
  const files = mosaic.files
    .filter(({ name }) => name !== "report.html")
    .map(({ name, bytes }) =>
      make("a", { class: "button", href: app.api.resultAddress(name), download: name }, `${name} (${sizeOf(bytes)})`),
    );
  const copy = make("button", { type: "button", class: "quiet", title: "copy the path of the folder" }, "copy the path");
  const folder = make("code", { class: "folder", "data-testid": "finished-folder" }, mosaic.folder);
  copy.addEventListener("click", () => {
    void copyText(folder, mosaic.folder).then((copied) => {
      remark.textContent = copied ? "The path of the folder is in the clipboard." : "The path is selected: copy it.";
    });
  });
  const open = make(
    "a",
    { class: "button primary", href: app.api.resultAddress("report.html"), target: "_blank", rel: "noopener" },
    "report",
  );
  open.dataset["testid"] = "finished-report";
  const single = make("span", { class: "finished-downloads" }, ...files);
  return [...(report ? [open] : []), menu, single, make("span", { class: "folder-line" }, folder, copy)];
}

async function copyText(element: HTMLElement, text: string): Promise<boolean> {
  getSelection()?.selectAllChildren(element);
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false; // the browser has no clipboard for a page that is not encrypted
  }
}

function describe({ now, before_px, error_px, frames, is_newest, files }: FinishedMosaic): string {
  const others = files.filter(({ name }) => /^mosaic-\d+\.png$/.test(name)).length;
  const apart = others === 0 ? "" : ` This is the first of ${others + 1} separate mosaics; the others are files below.`;
  const size = `${plural(frames, "frame")}, ${now.width} × ${now.height} pixels.`;
  const error = error_px === null ? "" : ` Predicted error ${px(error_px)} px`;
  const chain = error === "" || before_px === null ? "" : `; with the chain alone ${px(before_px)} px`;
  const newer = is_newest ? "" : " Newer answers are not in it: press “stop here” again.";
  return `${size}${error === "" ? "" : `${error}${chain}.`}${apart}${newer}`;
}

function statusOf({ zoom, pixel }: Shown): string {
  const percent = 100 * zoom;
  const place = pixel === null ? "" : ` · pixel ${pixel.x}, ${pixel.y}`;
  return `${percent.toFixed(percent < 10 ? 1 : 0)} %${place}`;
}

function sizeOf(bytes: number): string {
  if (bytes >= 1e6) return `${(bytes / 1e6).toFixed(1)} MB`;
  return `${Math.max(1, Math.round(bytes / 1e3))} kB`;
}
