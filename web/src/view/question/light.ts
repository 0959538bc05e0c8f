/** Local contrast, channels, highlights, brightness and gamma of the frames. */
import type { Channel, Look } from "../../model/contrast";
import { CHANNELS, PLAIN } from "../../model/contrast";
import type { Looks, Sides } from "../../state/looks";
import { make } from "../make";
import { makeSwitch } from "../mosaic/switches";

/** The gamma of the slider's ends is this and its inverse. */
const MOST_GAMMA = 3;

export function makeLight(looks: Looks): HTMLElement {
  const contrast = make(
    "button",
    { type: "button", class: "tool", title: "contrast: bring out faint structure everywhere (W)" },
    "contrast",
  );
  contrast.addEventListener("click", () => looks.toggleContrast());
  const brightness = makeSlider("brightness", (value) => looks.change({ brightness: 0.5 * value }));
  const gamma = makeSlider("gamma", (value) => looks.change({ gamma: MOST_GAMMA ** value }));
  const choices: { value: Sides; words: string }[] = [
    { value: "both", words: "both frames" },
    { value: "i", words: "first" },
    { value: "j", words: "second" },
  ];
  const sides = makeSwitch("which frames", choices, "both", (value) => looks.sides.set(value));
  const channel = makeChoice(looks);
  const highlights = make("button", { type: "button", title: "suppress reflections of the light" }, "no highlights");
  highlights.addEventListener("click", () => looks.change({ highlights: !looks.shown.highlights }));
  const plain = make("button", { type: "button" }, "as recorded");
  plain.addEventListener("click", () => looks.change(PLAIN));
  const menu = make("div", { class: "panel" }, sides, channel.element, brightness.label, gamma.label, highlights, plain);
  const summary = make("summary", { class: "tool button", title: "light: brightness, gamma, colours, highlights" }, "light");
  const details = make("details", { class: "light", "data-testid": "light" }, summary, menu);
  details.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !details.open) return;
    event.preventDefault();
    details.open = false;
    summary.focus();
  });
  document.addEventListener("pointerdown", ({ target }) => {
    if (target instanceof Node && !details.contains(target)) details.open = false;
  });
  const show = () => {
    const look: Look = looks.shown;
    channel.show(look.channel);
    highlights.setAttribute("aria-pressed", String(!look.highlights));
    contrast.setAttribute("aria-pressed", String(look.contrast));
    brightness.input.value = String(look.brightness / 0.5);
    gamma.input.value = String(Math.log(look.gamma) / Math.log(MOST_GAMMA));
  };
  looks.current.subscribe(show);
  looks.sides.subscribe(show);
  return make("div", { class: "group" }, contrast, details);
}

/** A choice of the channel that is shown. */
function makeChoice(looks: Looks) {
  const buttons = CHANNELS.map((channel) => {
    const words = channel === "all" ? "colour" : channel;
    const button = make("button", { type: "button", "aria-label": `channel: ${words}` }, words);
    button.addEventListener("click", () => looks.change({ channel }));
    return button;
  });
  const show = (chosen: Channel) => {
    buttons.forEach((button, k) => button.setAttribute("aria-pressed", String(CHANNELS[k] === chosen)));
  };
  return { element: make("div", { class: "channels", role: "group", "aria-label": "channel" }, ...buttons), show };
}

function makeSlider(name: string, change: (value: number) => void) {
  const input = make("input", { type: "range", min: -1, max: 1, step: 0.05, value: 0 });
  input.addEventListener("input", () => change(Number(input.value)));
  return { input, label: make("label", {}, make("span", {}, name), input) };
}
