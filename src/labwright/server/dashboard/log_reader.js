// Reads a run's output piece by piece into a buffer: the end first, more in either direction when asked.

import { get, isAborted, runPath } from "./api.js";
import { LogBuffer } from "./log_buffer.js";

const PIECE = 64 * 1024;
const BIG_PIECE = 1024 * 1024;
const TOO_FAR_BEHIND = 2 * 1024 * 1024; // a reader at the end skips to it rather than show all that went by

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

  earlier = () => this.#step(() => this.#earlier());

  async #earlier() {
    const { start } = this.buffer;
    if (!start) return;
    const from = Math.max(0, start - PIECE);
    const piece = await this.#read(from, start - from);
    const { text, skipped } = fromWholeCharacter(piece.content, piece.offset);
    const behindGap = piece.next_offset < start ? (await this.#read(piece.next_offset, start - piece.next_offset)).content : "";
    this.total = piece.total_size;
    this.buffer.prepend(text + behindGap, piece.offset + skipped);
  }

  later = () =>
    this.#step(async () => {
      if (!this.isAtEnd) this.#append(await this.#read(this.buffer.end, PIECE));
    });

  search = (words) => get(runPath(this.runId, "/logs"), { grep: words, ignore_case: true }, this.#abort.signal);

  firstError = () => get(runPath(this.runId, "/logs/first-error"), {}, this.#abort.signal);

  // The line that begins at a position, brought into the buffer with what stands around it.
  async lineAt(position) {
    let line;
    await this.#step(async () => {
      const piece = await this.#read(position, PIECE / 2);
      this.buffer.clear(position);
      this.#append(piece);
      line = this.buffer.lines[0];
      await this.#earlier();
    });
    return line;
  }
}

// A piece that begins in the middle of a character begins with marks for its bytes, one each: leave them to the piece
// before.
function fromWholeCharacter(text, from) {
  const skipped = from ? /^\ufffd{0,3}/.exec(text)[0].length : 0;
  return { text: text.slice(skipped), skipped };
}
