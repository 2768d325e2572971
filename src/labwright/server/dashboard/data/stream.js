// The event stream: server-sent events read with fetch, because EventSource cannot send the token as a header.

import { signal } from "../view.js";
import { address, requireToken, errorFrom } from "./api.js";
import { token } from "./session.js";

const SILENCE_MS = 40_000; // the server sends something every 15 s; longer silence means a dead connection
const RETRY_MS = [300, 600, 1000, 2000, 3000];

// Callbacks in `on`: event(event), hint(hint), connected({ kind, epoch, seq }) after each connect (kind `reset`: the
// server does not know the position), and state(name): connecting, live or gone.
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
      await this.#backOff();
    }
  }

  async #backOff() {
    const pause = RETRY_MS[Math.min(this.#failures++, RETRY_MS.length - 1)];
    await new Promise((resolve) => {
      this.#wake = resolve;
      setTimeout(resolve, pause);
    });
  }

  async #follow() {
    const used = requireToken();
    this.#abort = new AbortController();
    const watchdog = new Watchdog(() => {
      this.#failures ||= 1; // report the lost connection at once
      this.#abort.abort();
    });
    const headers = { "X-Auth-Token": used, ...(this.#position && { "Last-Event-ID": this.#position }) };
    try {
      const response = await fetch(address("events/stream"), { headers, signal: this.#abort.signal });
      if (!response.ok) throw await errorFrom(response, used);
      for await (const frame of frames(response.body, watchdog)) this.#take(frame);
    } finally {
      watchdog.stop();
    }
  }

  #take({ kind, data, id }) {
    if (id) this.#position = id;
    if (kind === "hint") this.#on.hint(data);
    else if (kind === "hello" || kind === "reset") this.#connected(kind, data);
    else this.#on.event(data);
  }

  #connected(kind, { epoch, seq }) {
    this.#position = `${epoch}:${seq}`;
    this.#failures = 0;
    this.#on.state("live");
    this.#on.connected({ kind, epoch, seq });
  }
}

class Watchdog {
  constructor(onSilence) {
    this.onSilence = onSilence;
    this.reset();
  }

  reset() {
    clearTimeout(this.timer);
    this.timer = setTimeout(this.onSilence, SILENCE_MS);
  }

  stop() {
    clearTimeout(this.timer);
  }
}

// Yield frames: blocks of `name: value` lines, separated by empty lines. Comment lines are keep-alives.
async function* frames(body, watchdog) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    watchdog.reset();
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

// One connection for all tabs, because a browser allows six per host. The tab that holds the lock reads the stream and
// broadcasts it. When it closes, the next tab continues at the same position; when it hangs, a visible tab takes over.
// Without locks (plain HTTP to another machine) every tab reads for itself.

const CHECK_MS = 15_000;
const PATIENCE = 2; // checks without a response

export const connection = signal("connecting"); // connecting | live | gone
export const isLeader = signal(false); // whether this tab reads the stream

// Callbacks in `on`: event(event), hint(hint) and back({ missed }) after each connect; `missed` means that all shown
// data must be fetched again.
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
  #checks;

  constructor(on) {
    this.#on = on;
    this.#channel.onmessage = ({ data }) => this.#receive(data);
    addEventListener("pageshow", this.#restored);
    if (!navigator.locks) {
      this.#lead();
      return;
    }
    this.#send({ kind: "who" });
    this.#queue();
    this.#checks = setInterval(() => this.#check(), CHECK_MS);
  }

  close() {
    clearInterval(this.#checks);
    removeEventListener("pageshow", this.#restored);
    this.#waiting.abort();
    this.#stream?.close();
    this.#channel.close();
    this.#release();
    isLeader.value = false;
    connection.value = "connecting";
  }

  tryNow = () => (this.#stream ? this.#stream.tryNow() : this.#send({ kind: "try" }));

  // A page restored from the browser's cache has missed events.
  #restored = (event) => {
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

  #check() {
    if (this.#stream || document.hidden) this.#unanswered = 0;
    else if (this.#unanswered++ < PATIENCE) this.#send({ kind: "who" });
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
    isLeader.value = false;
    this.#queue();
  }

  #lead() {
    isLeader.value = true;
    const pass = (kind) => (value) => this.#broadcast({ kind, value });
    const on = { event: pass("event"), hint: pass("hint"), connected: pass("connected"), state: pass("state") };
    this.#stream = new Stream(on, this.#epoch && `${this.#epoch}:${this.#seq}`);
    return new Promise((resolve) => (this.#release = resolve));
  }

  #broadcast(message) {
    this.#take(message);
    this.#send(message);
  }

  #send = (message) => this.#channel.postMessage(message);

  #receive(message) {
    if (message.kind !== "who") this.#unanswered = 0;
    if (message.kind === "who") this.#introduce();
    else if (message.kind === "try") this.#stream?.tryNow();
    else this.#take(message);
  }

  #introduce() {
    if (!this.#stream) return;
    this.#send({ kind: "state", value: connection.value });
    if (this.#epoch) this.#send({ kind: "here", value: { epoch: this.#epoch, seq: this.#seq } });
  }

  #take({ kind, value }) {
    if (kind === "state") connection.value = value;
    else if (kind === "hint") this.#on.hint(value);
    else if (kind === "event") this.#event(value);
    else if (kind === "connected") this.#connected(value, value.kind === "reset");
    else if (kind === "here" && !this.#epoch) this.#connected(value, true);
  }

  #event(event) {
    if (event.epoch === this.#epoch && event.seq <= this.#seq) return; // already received from the previous leader
    this.#seq = event.seq;
    this.#on.event(event);
  }

  #connected({ epoch, seq }, isNew) {
    const missed = isNew || epoch !== this.#epoch;
    this.#seq = missed ? seq : Math.max(seq, this.#seq);
    this.#epoch = epoch;
    this.#on.back({ missed });
  }
}
