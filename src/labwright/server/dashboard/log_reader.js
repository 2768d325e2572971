// Reads a run's output piece by piece into a buffer: the end first, more in either direction when asked.

import { get, isAborted, runPath } from "./api.js";
import { stripAnsi } from "./ansi.js";
import { LogBuffer } from "./log_buffer.js";

const PIECE = 64 * 1024;
const BIG_PIECE = 1024 * 1024;
const TOO_FAR_BEHIND = 2 * 1024 * 1024; // a reader at the end skips to it rather than show all that went by
const SEARCH_PIECES = 4; // as far as the server looks for the first error, from either end

const encoder = new TextEncoder();

export class LogReader {
  buffer = new LogBuffer();
  total = 0;
  isRead = false; // until then nothing is known of what there is
  removedAt = null; // when gc removed it
  #abort = new AbortController();
  #busy = Promise.resolve();
  #changed;

  constructor(runId, changed) {
    this.runId = runId;
    this.#changed = changed;
  }

  close() {
    this.#abort.abort();
  }

  get isAtEnd() {
    return this.buffer.end >= this.total;
  }

  // One at a time and in order: each step begins where the one before it ended.
  #step(work) {
    this.#busy = this.#busy.then(work).then(this.#changed, (error) => {
      if (!isAborted(error) && error.status) throw error; // an absent server is told of elsewhere; asked again then
    });
    return this.#busy;
  }

  #read = (offset, limit) => get(runPath(this.runId, "/logs"), { offset, limit }, this.#abort.signal);

  tail = () => this.#step(() => this.#tail());

  async #tail() {
    const piece = await this.#read(-PIECE, PIECE);
    this.buffer.clear(piece.offset);
    this.#append(piece);
  }

  #append(piece) {
    this.isRead = true;
    this.total = piece.total_size;
    this.removedAt = piece.removed_at;
    this.buffer.append(piece.content, piece.next_offset);
  }

  // More was written. Who reads further up is not disturbed; only the size is learnt.
  grow = (following) =>
    this.#step(async () => {
      const wasAtEnd = this.isAtEnd;
      let piece = await this.#read(this.buffer.end, wasAtEnd ? PIECE : 1);
      this.total = piece.total_size;
      if (!wasAtEnd) return;
      if (following && this.total - this.buffer.end > TOO_FAR_BEHIND) return this.#tail();
      this.#append(piece);
      while (piece.has_more_after && piece.content) {
        piece = await this.#read(this.buffer.end, BIG_PIECE);
        this.#append(piece);
      }
    });

  earlier = () =>
    this.#step(async () => {
      const { start } = this.buffer;
      if (!start) return;
      const from = Math.max(0, start - PIECE);
      const piece = await this.#read(from, start - from);
      const { text, skipped } = fromWholeCharacter(piece.content, from);
      this.total = piece.total_size;
      this.buffer.prepend(text, from + skipped);
    });

  later = () =>
    this.#step(async () => {
      if (!this.isAtEnd) this.#append(await this.#read(this.buffer.end, PIECE));
    });

  search = (words) => get(runPath(this.runId, "/logs"), { grep: words, ignore_case: true }, this.#abort.signal);

  // The line of the first error, brought into the buffer.
  async firstError() {
    const digest = await get(runPath(this.runId, "/logs/digest"), {}, this.#abort.signal);
    const words = digest.first_error?.split("\n")[0].replace(/…$/, "").trim();
    if (!words) return undefined;
    await this.#step(() => this.#bring(words));
    return this.#lineWith(words);
  }

  #lineWith = (words) => this.buffer.lines.find((line) => line.text.includes(words) || stripAnsi(line.text).includes(words));

  async #bring(words) {
    if (this.buffer.start === 0 && this.#lineWith(words)) return;
    const fromStart = [...Array(SEARCH_PIECES).keys()].map((n) => n * BIG_PIECE);
    const fromEnd = fromStart.map((n) => Math.max(0, this.total - BIG_PIECE * SEARCH_PIECES + n));
    for (const offset of [...fromStart, ...fromEnd].filter((from) => from < this.total)) {
      const { content } = await this.#read(offset, BIG_PIECE);
      const at = content.indexOf(words);
      if (at >= 0) return this.#around(offset + encoder.encode(content.slice(0, at)).length);
    }
  }

  async #around(position) {
    const from = Math.max(0, position - PIECE / 2);
    const piece = await this.#read(from, PIECE);
    const { text, skipped } = fromWholeCharacter(piece.content, from);
    this.buffer.clear(from + skipped);
    this.#append({ ...piece, content: text });
  }
}

// A piece that begins in the middle of a character begins with marks for its bytes, one each: leave them to the piece
// before.
function fromWholeCharacter(text, from) {
  const skipped = from ? /^\ufffd{0,3}/.exec(text)[0].length : 0;
  return { text: text.slice(skipped), skipped };
}
