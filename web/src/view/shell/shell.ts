/** The page: header, the question, mosaic and overview beside it, footer, and what lies above them. */
import { mountContradiction } from "../contradiction/contradiction";
import { mountAnswerConflict } from "../contradiction/conflict";
import { openExportMenu } from "../export/menu";
import { mountFinished } from "../finished/finished";
import { makeHelp } from "../help/help";
import { mountLandmarks } from "../landmarks/list";
import { make } from "../make";
import { mountMosaic } from "../mosaic/mosaic";
import { mountOverview } from "../overview/overview";
import type { Page } from "../page";
import { mountProgress } from "../progress/progress";
import { mountFrames } from "../question/frames";
import { mountToasts } from "../toast/toast";
import { makeCommands } from "./commands";
import { makeFooter } from "./footer";
import { makeGoDialog } from "./go";
import { makeHeader } from "./header";
import { listenToKeys } from "./keyboard";
import { makePart } from "./parts";
import { restoreTheme } from "./theme";

export function mountShell(root: HTMLElement, page: Page): void {
  restoreTheme();
  const help = makeHelp();
  const go = makeGoDialog(page.app);
  const commands = makeCommands(page, {
    openHelp: () => help.showModal(),
    openExports: openExportMenu,
    askForPair: () => go.showModal(),
    toggleLarge: (name) => parts[name].toggle(),
    shrink: () => parts.mosaic.shrink() || parts.overview.shrink(),
  });
  const parts = {
    mosaic: makePart("mosaic", "the mosaic", "m", commands.mosaic),
    overview: makePart("overview", "the overview", "o", commands.overview),
  };
  const question = make("section", { class: "question", "data-testid": "question", "aria-label": "the two frames" });
  const landmarks = make("section", { class: "landmarks", "aria-label": "landmarks and their fit" });
  const work = make("div", { class: "work" }, question, landmarks);
  const aside = make("aside", { "aria-label": "mosaic and overview" }, parts.mosaic.element, parts.overview.element);
  const main = make("main", {}, work, aside);
  root.append(makeHeader(page, commands), main, makeFooter(page, commands), help, go);

  mountFrames(question, page);
  mountLandmarks(landmarks, page);
  mountProgress(work, page.app, page.finished);
  mountFinished(root, page);
  mountContradiction(aside, page.app);
  mountAnswerConflict(root, page.app);
  mountToasts(work, page.app);
  mountMosaic(parts.mosaic.body, page.app);
  mountOverview(parts.overview.body, page.app);
  // Whoever picks a pair on a large map wants to see it.
  page.app.picked.subscribe(() => parts.mosaic.shrink() || parts.overview.shrink());
  listenToKeys(page, commands);
}
