// What an answer says, ready to be drawn as Markdown: where a number is marked, signs that no text has stand around it, and
// `decorated` turns them, citations and ids into elements while the words are drawn.

import { compareAddress, metricAddress, planAddress, runAddress, sweepAddress, wildAddress } from "../data/router.js";
import { number } from "../format.js";
import { html } from "../view.js";

const [OPENS, CLOSES, NUMBERS] = ["\uE000", "\uE001", 0xe100];
const PRIVATE = /[\uE000-\uF8FF]/g;
const PART =
  /(\uE000[\uE100-\uF8FF]|\uE001|\[E\d+(?:\s*[,;]\s*E\d+)*\]|\b(?:run|sweep|plan|wild)-[0-9a-hjkmnp-tv-z]{10}\b)/;
const SIGN = /(\uE000[\uE100-\uF8FF]|\uE001)/;
const ADDRESS = { run: runAddress, sweep: sweepAddress, plan: planAddress, wild: wildAddress };

// Positions of marks count characters, as the server does, not the halves of them that JavaScript counts.
export function withMarks(text, marks) {
  const characters = [...text.replace(PRIVATE, "\uFFFD")];
  marks.forEach(({ start, end }, index) => {
    if (start >= end || end > characters.length) return;
    characters[start] = OPENS + String.fromCharCode(NUMBERS + index) + characters[start];
    characters[end - 1] += CLOSES;
  });
  return characters.join("");
}

export const plain = (text) => text.replace(/\uE000[\uE100-\uF8FF]|\uE001/g, "");

// Text piece by piece, in order: a mark may begin in one piece and end in another.
function reader(pattern, marks, draw) {
  let mark = null;
  return (text) =>
    text.split(pattern).map((part) => {
      if (part[0] === OPENS) mark = marks[part.charCodeAt(1) - NUMBERS];
      else if (part === CLOSES) mark = null;
      else if (part) return draw(part, mark);
      return null;
    });
}

// A piece of words between two signs of Markdown.
export const decorated = (text, { marks = [], evidence }) =>
  reader(PART, marks, (part, mark) => marked(inner(part, evidence), mark))(text);

// Code, as its colours cut it to pieces: only what is marked is more than text.
export const markedCode = (marks) => reader(SIGN, marks, marked);

// Ids lead to what they name; nothing is cited.
export const LINKED = { words: (text) => decorated(text, {}), source: plain };

export const faultWords = ({ fault, detail }) => `${fault.replaceAll("_", " ")}: ${detail}`;

function marked(shown, mark) {
  if (!mark) return shown;
  const why = faultWords(mark);
  return html`<mark class="unsupported" title=${why}>
    ${shown}
    <span class="hidden"> (${why})</span>
  </mark>`;
}

const inner = (part, evidence) =>
  /^\[E\d/.test(part)
    ? part.match(/E\d+/g).map((name) => html`<${Chip} name=${name} evidence=${evidence?.get(name)} />`)
    : linked(part);

function linked(part) {
  const [, kind] = /^(run|sweep|plan|wild)-[0-9a-hjkmnp-tv-z]{10}$/.exec(part) ?? [];
  return kind ? html`<a href=${ADDRESS[kind](part)}>${part}</a>` : part;
}

// Where a number comes from: opens what was looked at.
function Chip({ name, evidence }) {
  if (!evidence)
    return html`<span class="chip-evidence chip-unknown" title="No tool gave this in the conversation">
      ${name}
    </span>`;
  const { words, href } = sourceOf(evidence);
  return href
    ? html`<a class="chip-evidence" href=${href} title=${words}>
      ${name}
    </a>`
    : html`<span class="chip-evidence" title=${words}>
      ${name}
    </span>`;
}

// What a piece of evidence shows, in words, and where it can be looked at.

const MOST_VALUES = 6;

const EVIDENCE_ADDRESS = {
  run: ({ run_id: id }) => runAddress(id),
  metric: ({ run_id: id, key }) => metricAddress(id, key),
  log: ({ run_id: id }) => runAddress(id),
  group: ({ run_ids: ids }) => compareAddress(ids),
  ranking: ({ run_ids: ids }) => compareAddress(ids),
  difference: ({ first, second }) => compareAddress([...first, ...second]),
  sweep: ({ sweep_id: id }) => sweepAddress(id),
  configuration: ({ sweep_id: id }) => `${sweepAddress(id)}?tab=configurations`,
  runs: () => "#/runs",
  cluster: () => "#/cluster",
};

function sourceOf({ kind, source, values, key, about, settled }) {
  const subject = [key, kind === "runs" || kind === "cluster" ? kind : (about?.[1] ?? about?.[0])]
    .filter(Boolean)
    .join(" of ");
  const shown = Object.entries(values ?? {})
    .slice(0, MOST_VALUES)
    .map(([name, value]) => `${name} ${number(value)}`)
    .join(", ");
  const words = [subject || kind, shown, settled ? "" : "still changing"].filter(Boolean).join(" · ");
  return { words, href: Object.hasOwn(EVIDENCE_ADDRESS, kind) ? EVIDENCE_ADDRESS[kind](source) : "" };
}
