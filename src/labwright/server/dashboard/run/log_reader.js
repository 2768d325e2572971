// Reads a run's output piece by piece into a buffer: the end first, more in either direction when asked.

import { get, isAborted, runPath } from "../data/api.js";

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
    const behindGap =
      piece.next_offset < start ? (await this.#read(piece.next_offset, start - piece.next_offset)).content : "";
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

// The part of a run's output that this page holds: lines in order, a bounded number of them, and where in the output
// they are. It grows at either end; what is then too much leaves at the other.

const MAX_LINES = 40_000;
const MAX_TEXT = 4_000_000; // characters: lines can be long
const MAX_LINE_LENGTH = 20_000;
const encoder = new TextEncoder();

export class LogBuffer {
  // { text, folded, bytes }: folded counts what a progress bar overwrote; bytes of all lines add up to end - start.
  lines = [];
  start = 0;
  end = 0;
  shifted = 0; // lines added at the top less those that left there: a view moves by this to stand still
  #isOpen = false; // the last line has no end yet

  clear(position) {
    this.lines = [];
    this.start = this.end = position;
    this.shifted = 0;
    this.#isOpen = false;
  }

  append(text, end) {
    const fresh = linesOf(text, end - this.end);
    if (this.#isOpen && fresh.length) this.lines.push(joined(this.lines.pop(), fresh.shift()));
    this.lines.push(...fresh);
    this.end = end;
    if (text) this.#isOpen = !text.endsWith("\n");
    const surplus = this.lines.splice(0, this.lines.length - fitting(this.lines.toReversed()));
    this.start += bytesOf(surplus);
    this.shifted -= surplus.length;
  }

  prepend(text, start) {
    const fresh = linesOf(text, this.start - start);
    const added = fresh.length;
    const isCut = text && !text.endsWith("\n") && this.lines.length; // its last line goes on as our first
    if (isCut) fresh.push(joined(fresh.pop(), this.lines.shift()));
    this.lines = [...fresh, ...this.lines];
    this.start = start;
    this.shifted += isCut ? added - 1 : added;
    const surplus = this.lines.splice(fitting(this.lines));
    this.end -= bytesOf(surplus);
    if (surplus.length) this.#isOpen = false;
  }
}

// How many of them there is room for, from the first on.
function fitting(lines) {
  let room = MAX_TEXT;
  const over = lines.slice(0, MAX_LINES).findIndex(({ text }) => (room -= text.length) < 0);
  return over < 0 ? Math.min(lines.length, MAX_LINES) : Math.max(1, over);
}

const bytesOf = (lines) => lines.reduce((sum, line) => sum + line.bytes, 0);

// What the server put in place of unreadable bytes or of a hole has another length than the bytes: the last line takes
// up the difference.
function linesOf(text, bytes) {
  if (!text) return [];
  const parts = text.split("\n");
  const last = parts.pop();
  const lines = parts.map((part) => folded(part, lengthOf(part) + 1));
  if (last) lines.push(folded(last, lengthOf(last)));
  lines.at(-1).bytes += bytes - bytesOf(lines);
  return lines;
}

const lengthOf = (text) => (/^[\x00-\x7f]*$/.test(text) ? text.length : encoder.encode(text).length);

function joined(line, next) {
  const both = folded(line.text + next.text, line.bytes + next.bytes);
  if (next.folded) return { ...next, folded: line.folded + next.folded, bytes: both.bytes };
  return { ...both, folded: line.folded + both.folded };
}

// A carriage return writes over the line: keep what would be seen. One at the very end may still become \r\n.
function folded(text, bytes) {
  const at = text.endsWith("\r") ? text.length - 1 : text.length;
  const states = text.slice(0, at).split("\r");
  const seen = states.findLast((state) => state !== "") ?? "";
  return { text: (seen + text.slice(at)).slice(0, MAX_LINE_LENGTH), folded: states.length - 1, bytes };
}
