// One connection for all tabs of this browser: a browser allows six a host. The tab that holds the lock reads the stream
// and tells the others; when it goes, the next one goes on at the position it knows. Where a browser has no locks (plain
// HTTP to another machine), each tab reads for itself.

import { token } from "./session.js";
import { Stream } from "./stream.js";
import { signal } from "./ui.js";

export const connection = signal("connecting"); // connecting | live | gone
export const leads = signal(false); // whether this tab is the one that reads

// `on` has event(event), hint(hint) and back({ missed }) for each time that the stream stands (again); `missed` says that
// everything shown has to be fetched anew.
export class SharedStream {
  #on;
  #epoch = "";
  #seq = 0;
  #stream = null;
  #release = () => {};
  #waiting = new AbortController();
  #channel;

  constructor(on) {
    this.#on = on;
    const name = `labwright.stream.${token.value.slice(-8)}`;
    this.#channel = new BroadcastChannel(name);
    this.#channel.onmessage = ({ data }) => this.#hear(data);
    addEventListener("pageshow", this.#thawed);
    if (!navigator.locks) {
      this.#lead();
      return;
    }
    this.#channel.postMessage({ kind: "who" });
    navigator.locks.request(name, { signal: this.#waiting.signal }, () => this.#lead()).catch((error) => {
      if (error.name !== "AbortError") throw error;
    });
  }

  close() {
    removeEventListener("pageshow", this.#thawed);
    this.#waiting.abort();
    this.#stream?.close();
    this.#channel.close();
    this.#release();
    leads.value = false;
    connection.value = "connecting";
  }

  tryNow = () => (this.#stream ? this.#stream.tryNow() : this.#tell({ kind: "try" }));

  // A page that the browser had put away was told nothing meanwhile.
  #thawed = (event) => {
    if (event.persisted) this.#on.back({ missed: true });
  };

  #lead() {
    leads.value = true;
    const pass = (kind) => (value) => this.#spread({ kind, value });
    const on = { event: pass("event"), hint: pass("hint"), stands: pass("stands"), state: pass("state") };
    this.#stream = new Stream(on, this.#epoch && `${this.#epoch}:${this.#seq}`);
    return new Promise((resolve) => (this.#release = resolve));
  }

  #spread(message) {
    this.#take(message);
    this.#tell(message);
  }

  #tell = (message) => this.#channel.postMessage(message);

  #hear(message) {
    if (message.kind === "who") this.#introduce();
    else if (message.kind === "try") this.#stream?.tryNow();
    else this.#take(message);
  }

  #introduce() {
    if (!this.#stream) return;
    this.#tell({ kind: "state", value: connection.value });
    if (this.#epoch) this.#tell({ kind: "here", value: { epoch: this.#epoch, seq: this.#seq } });
  }

  #take({ kind, value }) {
    if (kind === "state") connection.value = value;
    else if (kind === "hint") this.#on.hint(value);
    else if (kind === "event") this.#event(value);
    else if (kind === "stands") this.#stands(value, value.kind === "reset");
    else if (kind === "here" && !this.#epoch) this.#stands(value, true);
  }

  #event(event) {
    if (event.epoch === this.#epoch && event.seq <= this.#seq) return; // told by the tab that led before
    this.#seq = event.seq;
    this.#on.event(event);
  }

  #stands({ epoch, seq }, isNew) {
    const missed = isNew || epoch !== this.#epoch;
    this.#seq = missed ? seq : Math.max(seq, this.#seq);
    this.#epoch = epoch;
    this.#on.back({ missed });
  }
}
