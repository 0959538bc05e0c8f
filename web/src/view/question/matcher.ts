/** What the matcher says of the pair, to accept or to hide. */
import { matcherSays } from "../../model/words";
import { make } from "../make";
import type { Page } from "../page";
import { makeKeyButton } from "../shell/button";

export function makeMatcherStrip({ app, hand }: Page): HTMLElement {
  const words = make("span", { class: "sentence" });
  const kind = { class: "quiet small" };
  const accept = makeKeyButton({ ...kind, text: "use its landmarks", key: "a", act: () => hand.takeProposal() });
  const reject = makeKeyButton({ ...kind, text: "hide", key: "r", act: () => hand.rejectProposal() });
  const strip = make("div", { class: "matcher", role: "status", "data-testid": "proposal" }, words, accept, reject);
  app.drawing.proposal.subscribe((proposal) => {
    strip.classList.toggle("silent", proposal === null);
    if (proposal === null) return;
    words.textContent = words.title = matcherSays(proposal);
    accept.hidden = proposal.landmarks.length === 0;
  });
  return strip;
}
