/** Puts the page together and listens to the program. */
import "./style/page.css";
import { connect } from "./state/api";
import { Application } from "./state/application";
import { keepChecking } from "./state/checking";
import { Curves } from "./state/curves";
import { listen } from "./state/events";
import { Finished } from "./state/finished";
import { Hand } from "./state/hand";
import { Laying } from "./state/laying";
import { nameOfPage } from "./state/page";
import { PairView } from "./state/pairview";
import { Snapping } from "./state/snapping";
import { mountShell } from "./view/shell/shell";

const app = new Application(connect(nameOfPage(sessionStorage)), localStorage);
const pairView = new PairView(app.drawing);
const snapping = new Snapping(app, pairView, localStorage);
const hand = new Hand(app, pairView, snapping);
const laying = new Laying(app, pairView);
const curves = new Curves(app, pairView);
const finished = new Finished(app);
mountShell(document.body, { app, finished, pairView, hand, laying, curves, snapping });
keepChecking(app);

listen(app.api, {
  onNotice: (notice) => app.hear(notice),
  onConnection: (connected) => {
    const wasAway = !app.voice.connected.value;
    app.voice.connected.set(connected);
    if (connected && wasAway) void app.refresh();
  },
});
void app.refresh();
