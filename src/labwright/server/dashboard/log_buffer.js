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
