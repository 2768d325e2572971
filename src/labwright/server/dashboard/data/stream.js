// The one live connection: server-sent events read by fetch, because EventSource cannot send the token as a header.

import { address, ourToken, refusal } from "./api.js";
import { token } from "./session.js";
import { signal } from "../view.js";

const SILENCE_MS = 40_000; // the server says something every 15 s; longer silence is a dead connection
const RETRY_MS = [300, 600, 1000, 2000, 3000];

// `on` has event(event), hint(hint), stands({ kind, epoch, seq }) for each time that a connection stands (`reset` says
// that the position is unknown to the server) and state(name): connecting, live or gone.
class Stream {
  #on;
  #position;
  #abort = null;
  #closed = false;
  #failures = 0;
  #wake = () => {};

  constructor(on, position = "") {
    this.#on = on;
    this.#position = position;
    addEventListener("online", this.tryNow);
    this.#run();
  }

  close() {
    this.#closed = true;
    removeEventListener("online", this.tryNow);
    this.#abort?.abort();
    this.#wake();
  }

  tryNow = () => this.#wake();

  async #run() {
    while (!this.#closed) {
      try {
        await this.#follow();
      } catch (error) {
        if (error.status === 401) return; // signed out: the sign-in page takes over
      }
      if (this.#closed) return;
      this.#on.state(this.#failures ? "gone" : "connecting");
      await this.#rest();
    }
  }

  async #rest() {
    const pause = RETRY_MS[Math.min(this.#failures++, RETRY_MS.length - 1)];
    await new Promise((resolve) => {
      this.#wake = resolve;
      setTimeout(resolve, pause);
    });
  }

  async #follow() {
    const used = ourToken();
    this.#abort = new AbortController();
    const watchdog = new Watchdog(() => {
      this.#failures ||= 1; // so long a silence is told at once, not after another one
      this.#abort.abort();
    });
    const headers = { "X-Auth-Token": used, ...(this.#position && { "Last-Event-ID": this.#position }) };
    try {
      const response = await fetch(address("events/stream"), { headers, signal: this.#abort.signal });
      if (!response.ok) throw await refusal(response, used);
      for await (const frame of frames(response.body, watchdog)) this.#take(frame);
    } finally {
      watchdog.stop();
    }
  }

  #take({ kind, data, id }) {
    if (id) this.#position = id;
    if (kind === "hint") this.#on.hint(data);
    else if (kind === "hello" || kind === "reset") this.#stands(kind, data);
    else this.#on.event(data);
  }

  #stands(kind, { epoch, seq }) {
    this.#position = `${epoch}:${seq}`;
    this.#failures = 0;
    this.#on.state("live");
    this.#on.stands({ kind, epoch, seq });
  }
}

class Watchdog {
  constructor(bark) {
    this.bark = bark;
    this.pat();
  }

  pat() {
    clearTimeout(this.timer);
    this.timer = setTimeout(this.bark, SILENCE_MS);
  }

  stop() {
    clearTimeout(this.timer);
  }
}

// Blocks of `name: value` lines with an empty line behind each; comment lines only show that the other side is there.
async function* frames(body, watchdog) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    watchdog.pat();
    const blocks = (text + value).split("\n\n");
    text = blocks.pop();
    for (const block of blocks) {
      const frame = parsed(block);
      if (frame) yield frame;
    }
  }
}

function parsed(block) {
  const fields = {};
  for (const line of block.split("\n")) {
    const at = line.indexOf(": ");
    if (at > 0) fields[line.slice(0, at)] = line.slice(at + 2);
  }
  return fields.data ? { kind: fields.event, id: fields.id, data: JSON.parse(fields.data) } : null;
}

// One connection for all tabs of this browser: a browser allows six a host. The tab that holds the lock reads the stream
// and tells the others; when it goes, the next one goes on at the position it knows, and when it hangs, a tab that is seen
// takes its place. Where a browser has no locks (plain HTTP to another machine), each tab reads for itself.

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
    navigator.locks
      .request(this.#name, options, () => this.#lead())
      .catch((error) => {
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
