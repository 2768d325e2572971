// Read a run's output in pieces: the end first, then more in either direction.

import { get, isAborted, runPath } from "../data/api.js";

const PIECE = 64 * 1024;
const BIG_PIECE = 1024 * 1024;
const TOO_FAR_BEHIND = 2 * 1024 * 1024; // skip to the end if this far behind

export class LogReader {
  buffer = new LogBuffer();
  total = 0;
  isRead = false; // whether anything was read
  removedAt = null; // when gc removed the output
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

  // Run steps one after the other: each starts where the previous one ended.
  #step(work) {
    this.#busy = this.#busy.then(work).then(this.#changed, (error) => {
      // The banner shows that the server is unreachable; retried later.
      if (!isAborted(error) && error.status) throw error;
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

  // Read new output. If the buffer is not at the end, only update the size.
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

  search = (query) => get(runPath(this.runId, "/logs"), { grep: query, ignore_case: true }, this.#abort.signal);

  firstError = () => get(runPath(this.runId, "/logs/first-error"), {}, this.#abort.signal);

  // Load the line at a position and the lines around it.
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

// Skip replacement characters at the start of a piece: they belong to a character of the previous piece.
function fromWholeCharacter(text, from) {
  const skipped = from ? /^\ufffd{0,3}/.exec(text)[0].length : 0;
  return { text: text.slice(skipped), skipped };
}

// The loaded part of the output: a bounded number of lines and their position. It grows at one end and shrinks at the
// other.

const MAX_LINES = 40_000;
const MAX_TEXT = 4_000_000; // characters
const MAX_LINE_LENGTH = 20_000;
const encoder = new TextEncoder();

export class LogBuffer {
  // { text, folded, bytes }: `folded` counts overwritten versions (progress bars). The bytes add up to end - start.
  lines = [];
  start = 0;
  end = 0;
  shifted = 0; // lines added at the top minus lines removed there; the view scrolls by this to stay in place
  #isOpen = false; // the last line is incomplete

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
    const isCut = text && !text.endsWith("\n") && this.lines.length; // its last line continues in our first
    if (isCut) fresh.push(joined(fresh.pop(), this.lines.shift()));
    this.lines = [...fresh, ...this.lines];
    this.start = start;
    this.shifted += isCut ? added - 1 : added;
    const surplus = this.lines.splice(fitting(this.lines));
    this.end -= bytesOf(surplus);
    if (surplus.length) this.#isOpen = false;
  }
}

// Return how many of the first lines fit into the buffer.
function fitting(lines) {
  let room = MAX_TEXT;
  const over = lines.slice(0, MAX_LINES).findIndex(({ text }) => (room -= text.length) < 0);
  return over < 0 ? Math.min(lines.length, MAX_LINES) : Math.max(1, over);
}

const bytesOf = (lines) => lines.reduce((sum, line) => sum + line.bytes, 0);

// Split text into lines. Replacement characters differ in length from the original bytes: the last line absorbs the
// difference.
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

// A carriage return overwrites the line: keep the visible text. One at the very end may become \r\n.
function folded(text, bytes) {
  const at = text.endsWith("\r") ? text.length - 1 : text.length;
  const states = text.slice(0, at).split("\r");
  const seen = states.findLast((state) => state !== "") ?? "";
  return { text: (seen + text.slice(at)).slice(0, MAX_LINE_LENGTH), folded: states.length - 1, bytes };
}
