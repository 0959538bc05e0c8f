/** Word from the program: what has changed, and whether it is there at all. */
import type { Notice } from "../model/messages";
import type { Api } from "./api";

export interface Listener {
  onNotice(notice: Notice): void;
  onConnection(connected: boolean): void;
}

/** Listen until the returned function is called; the browser itself connects again after a loss. */
export function listen(api: Api, { onNotice, onConnection }: Listener): () => void {
  let source: EventSource;
  let retry = 0;
  const open = () => {
    source = new EventSource(api.eventsAddress);
    source.onopen = () => onConnection(true);
    source.onmessage = (event: MessageEvent<string>) => onNotice(JSON.parse(event.data) as Notice);
    source.onerror = () => {
      onConnection(false);
      // After an answer that is no stream of events the browser gives up; we do not.
      if (source.readyState === EventSource.CLOSED) retry = window.setTimeout(open, 2000);
    };
  };
  open();
  return () => {
    window.clearTimeout(retry);
    source.close();
  };
}
