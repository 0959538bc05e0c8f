/** Puts the page together and listens to the program. */
import "./style/page.css";
import { connect } from "./state/api";
import { Application } from "./state/application";
import { keepChecking } from "./state/checking";
import { listen } from "./state/events";
import { Hand } from "./state/hand";
import { Sight } from "./state/sight";
import { Snapping } from "./state/snapping";
import { mountShell } from "./view/shell/shell";

const app = new Application(connect(), localStorage);
const sight = new Sight(app.drawing);
const hand = new Hand(app, sight);
mountShell(document.body, { app, sight, hand, snapping: new Snapping(app, sight, hand) });
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
