// Text with citations. `withMarks` puts private characters around unsupported claims; `decorated` turns them, citations
// and ids into elements while the Markdown is drawn.

import { number } from "../format.js";
import { html } from "../view.js";
import { compareAddress, metricAddress, planAddress, runAddress, sweepAddress, wildAddress } from "../data/router.js";

const [OPENS, CLOSES, NUMBERS] = ["\uE000", "\uE001", 0xe100];
const PRIVATE = /[\uE000-\uF8FF]/g;
const PART =
  /(\uE000[\uE100-\uF8FF]|\uE001|\[E\d+(?:\s*[,;]\s*E\d+)*\]|\b(?:run|sweep|plan|wild)-[0-9a-hjkmnp-tv-z]{10}\b)/;
const SIGN = /(\uE000[\uE100-\uF8FF]|\uE001)/;
const ADDRESS = { run: runAddress, sweep: sweepAddress, plan: planAddress, wild: wildAddress };

// The positions count code points, as the server does, not UTF-16 units.
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

// Return a function that draws text piece by piece; a mark may start in one piece and end in another.
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

// Draw a piece of text within Markdown.
export const decorated = (text, { marks = [], evidence }) =>
  reader(PART, marks, (part, mark) => marked(inner(part, evidence), mark))(text);

// Draw a piece of highlighted code: only marks are decorated.
export const markedCode = (marks) => reader(SIGN, marks, marked);

// Drawing options that only link ids.
export const LINKED = { text: (text) => decorated(text, {}), source: plain };

export const faultText = ({ fault, detail }) => `${fault.replaceAll("_", " ")}: ${detail}`;

function marked(shown, mark) {
  if (!mark) return shown;
  const why = faultText(mark);
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

// A citation that links to its evidence.
function Chip({ name, evidence }) {
  if (!evidence)
    return html`<span class="chip-evidence chip-unknown" title="No tool returned this evidence in the conversation">
      ${name}
    </span>`;
  const { text, href } = sourceOf(evidence);
  return href
    ? html`<a class="chip-evidence" href=${href} title=${text}>
      ${name}
    </a>`
    : html`<span class="chip-evidence" title=${text}>
      ${name}
    </span>`;
}

// Describe a piece of evidence and link to it.

const MAX_VALUES = 6;

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
    .slice(0, MAX_VALUES)
    .map(([name, value]) => `${name} ${number(value)}`)
    .join(", ");
  const text = [subject || kind, shown, settled ? "" : "still changing"].filter(Boolean).join(" · ");
  return { text, href: Object.hasOwn(EVIDENCE_ADDRESS, kind) ? EVIDENCE_ADDRESS[kind](source) : "" };
}
