// The one live connection: server-sent events read by fetch, because EventSource cannot send the token as a header.

import { address, ourToken, refusal } from "./api.js";

const SILENCE_MS = 40_000; // the server says something every 15 s; longer silence is a dead connection
const RETRY_MS = [300, 600, 1000, 2000, 3000];

// `on` has event(event), hint(hint), stands({ kind, epoch, seq }) for each time that a connection stands (`reset` says
// that the position is unknown to the server) and state(name): connecting, live or gone.
export class Stream {
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
