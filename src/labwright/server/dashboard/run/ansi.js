// Split terminal output into pieces with a class or a color. Other control sequences are dropped.

// Sequences that start with [ come before two-byte sequences, which would match the [ as well.
const SEQUENCE =
  /\x1b(?:\[([0-9;:]*)([@-~])|\[[0-?]*[ -/]*[@-~]?|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[PX^_][^\x1b]*(?:\x1b\\)?|[ -/]*[0-~])/g;
const CONTROL = /[\x00-\x08\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f]/g;

export const stripAnsi = (text) => (text.includes("\x1b") ? text.replace(SEQUENCE, "") : text).replace(CONTROL, "");

export function pieces(text) {
  if (!text.includes("\x1b")) return [{ text: text.replace(CONTROL, "") }];
  const found = [];
  let style = {};
  let from = 0;
  for (const match of text.matchAll(SEQUENCE)) {
    add(found, text.slice(from, match.index), style);
    if (match[2] === "m") style = applied(style, match[1]);
    from = match.index + match[0].length;
  }
  add(found, text.slice(from), style);
  return found;
}

function add(found, text, style) {
  const clean = text.replace(CONTROL, "");
  if (clean) found.push({ text: clean, ...shown(style) });
}

function applied(style, parameters) {
  const codes = parameters.split(/[;:]/).map(Number);
  let next = { ...style };
  for (let at = 0; at < codes.length; at += 1) {
    const code = codes[at];
    if (code === 0) next = {};
    else if (code === 1) next.bold = true;
    else if (code === 2) next.dim = true;
    else if (code === 3) next.italic = true;
    else if (code === 4) next.underline = true;
    else if (code === 7) next.inverse = true;
    else if (code === 22) next.bold = next.dim = false;
    else if (code === 23) next.italic = false;
    else if (code === 24) next.underline = false;
    else if (code === 27) next.inverse = false;
    else if (code >= 30 && code <= 37) next.front = code - 30;
    else if (code >= 90 && code <= 97) next.front = code - 82;
    else if (code >= 40 && code <= 47) next.back = code - 40;
    else if (code >= 100 && code <= 107) next.back = code - 92;
    else if (code === 39) delete next.front;
    else if (code === 49) delete next.back;
    else if (code === 38 || code === 48) {
      const [color, used] = extended(codes, at + 1);
      if (color !== undefined) next[code === 38 ? "front" : "back"] = color;
      at += used;
    }
  }
  return next;
}

// Parse `5;n` (256 colors) or `2;r;g;b`. Only numbers reach the style.
function extended(codes, at) {
  if (codes[at] === 5) return [indexed(codes[at + 1]), 2];
  if (codes[at] === 2) return [rgb(codes[at + 1], codes[at + 2], codes[at + 3]), 4];
  return [undefined, 1];
}

function indexed(n) {
  if (!(n >= 0 && n <= 255)) return undefined;
  if (n < 16) return n;
  if (n >= 232) return rgb(...Array(3).fill(8 + (n - 232) * 10));
  const level = (value) => (value ? 55 + value * 40 : 0);
  return rgb(level(Math.floor((n - 16) / 36)), level(Math.floor((n - 16) / 6) % 6), level((n - 16) % 6));
}

const rgb = (...parts) => `rgb(${parts.map((part) => Math.max(0, Math.min(255, part || 0))).join(" ")})`;

function shown({ bold, dim, italic, underline, inverse, front, back }) {
  const classes = [];
  const style = {};
  if (bold) classes.push("ansi-bold");
  if (dim) classes.push("ansi-dim");
  if (italic) classes.push("ansi-italic");
  if (underline) classes.push("ansi-underline");
  if (inverse) classes.push("ansi-inverse");
  if (typeof front === "number") classes.push(`ansi-${front}`);
  else if (front) style.color = front;
  if (typeof back === "number") classes.push(`ansi-back-${back}`);
  else if (back) style.backgroundColor = back;
  return { class: classes.join(" ") || undefined, style: Object.keys(style).length ? style : undefined };
}
