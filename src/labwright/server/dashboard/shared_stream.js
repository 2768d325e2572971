// One connection for all tabs of this browser: a browser allows six a host. The tab that holds the lock reads the stream
// and tells the others; when it goes, the next one goes on at the position it knows, and when it hangs, a tab that is seen
// takes its place. Where a browser has no locks (plain HTTP to another machine), each tab reads for itself.

import { token } from "./session.js";
import { Stream } from "./stream.js";
import { signal } from "./ui.js";

const LOOK_MS = 15_000;
const PATIENCE = 2; // looks without an answer

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
  #name = `labwright.stream.${token.value.slice(-8)}`;
  #channel = new BroadcastChannel(this.#name);
  #unanswered = 0;
  #looks;

  constructor(on) {
    this.#on = on;
    this.#channel.onmessage = ({ data }) => this.#hear(data);
    addEventListener("pageshow", this.#thawed);
    if (!navigator.locks) {
      this.#lead();
      return;
    }
    this.#tell({ kind: "who" });
    this.#queue();
    this.#looks = setInterval(() => this.#look(), LOOK_MS);
  }

  close() {
    clearInterval(this.#looks);
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

  #queue() {
    this.#request({ signal: this.#waiting.signal });
  }

  #request(options) {
    navigator.locks.request(this.#name, options, () => this.#lead()).catch((error) => {
      if (error.name !== "AbortError") throw error;
      if (!this.#waiting.signal.aborted && !options.signal?.aborted) this.#stepDown(); // another tab took the lock
    });
  }

  #look() {
    if (this.#stream || document.hidden) this.#unanswered = 0;
    else if (this.#unanswered++ < PATIENCE) this.#tell({ kind: "who" });
    else this.#takeOver();
  }

  #takeOver() {
    this.#waiting.abort();
    this.#waiting = new AbortController();
    this.#unanswered = 0;
    this.#request({ steal: true });
  }

  #stepDown() {
    this.#stream.close();
    this.#stream = null;
    leads.value = false;
    this.#queue();
  }

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
    if (message.kind !== "who") this.#unanswered = 0;
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
