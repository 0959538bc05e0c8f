/** Short messages on the screen and for a screen reader. */
import type { Application } from "../../state/application";
import { make } from "../make";

const SHOWN_MS = { info: 4500, warning: 12000 };

export function mountToasts(host: HTMLElement, app: Application): void {
  const text = make("span", {});
  const close = make("button", { type: "button", class: "quiet small", "aria-label": "close the message" }, "×");
  const toast = make("div", { class: "toast", role: "status", "aria-live": "polite" }, text, close);
  const whisper = make("div", { class: "hidden", "aria-live": "polite" });
  host.append(toast, whisper);
  let timer = 0;
  const hide = () => toast.classList.remove("shown");
  close.addEventListener("click", hide);
  app.voice.announcement.subscribe((announcement) => {
    if (announcement === null) return hide();
    text.textContent = announcement.text;
    toast.classList.add("shown");
    toast.classList.toggle("warning", announcement.tone === "warning");
    window.clearTimeout(timer);
    timer = window.setTimeout(hide, SHOWN_MS[announcement.tone]);
  });
  app.voice.whispered.subscribe((words) => (whisper.textContent = words));
}
