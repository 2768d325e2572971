// The saved versions of a plan, and the diff between two of them.

import { html, useMemo, useState } from "../view.js";
import { useFetched } from "../data/fetched.js";
import { Problem } from "../ui/message.js";
import { Ago } from "../ui/time.js";
import { Actor } from "../work/actor.js";

export function PlanVersions({ plan }) {
  const { data, problem, refresh } = useFetched(
    `plans/${encodeURIComponent(plan.id)}/versions`,
    { limit: 100 },
    { refreshOn: (event) => event.data.plan_id === plan.id },
  );
  const [picked, setPicked] = useState(null);
  if (problem && !data) return html`<${Problem} error=${problem} retry=${refresh} />`;
  if (!data) return html`<div class="loading" aria-busy="true"></div>`;
  const newer = data.find(({ version }) => version === picked?.[1]) ?? data[0];
  const older = data.find(({ version }) => version === picked?.[0]) ?? data[1];
  const choice = (label, current, onPick) =>
    html`<label>
      ${label}${" "}
      <select aria-label=${label} onChange=${(event) => onPick(Number(event.currentTarget.value))}>
        ${data.map(
          ({ version }) =>
            html`<option key=${version} value=${version} selected=${version === current}>
              ${version}
            </option>`,
        )}
      </select>
    </label>`;
  return html`<section class="stack" aria-label="Versions">
    <ul class="lines">
      ${data.map(
        (one) =>
          html`<li class="run-line" key=${one.version}>
            <strong class="num">v${one.version}</strong>
            <span class="version-title">${one.title}</span>
            <span class="muted">
              <${Actor} actor=${one.created_by} />
            </span>
            <span class="muted run-line-time">
              <${Ago} time=${one.created_at} />
            </span>
          </li>`,
      )}
    </ul>
    ${
      older &&
      html`<div class="controls controls-left">
        ${choice("From version", older.version, (version) => setPicked([version, newer.version]))}
        ${choice("To version", newer.version, (version) => setPicked([older.version, version]))}
      </div>
      <${Diff} before=${older.raw_markdown} after=${newer.raw_markdown} />`
    }
  </section>`;
}

const KIND = { "+": "hl-addition", "-": "hl-deletion", " ": "" };

export function Diff({ before, after }) {
  const lines = useMemo(() => hunks(lineDiff(before, after)), [before, after]);
  if (before === after) return html`<p class="muted">No differences.</p>`;
  return html`<pre class="code diff" tabindex="0" role="region" aria-label="Diff">
    ${lines.map((line, at) =>
      line
        ? html`<span key=${at} class="diff-line ${KIND[line[0]]}">
          ${line[0]} ${line[1]}
        </span>`
        : html`<span key=${at} class="muted">
          ⋯
        </span>`,
    )}
  </pre>`;
}

// Return the line diff of two texts: [" " | "-" | "+", line] each.

const MAX_CELLS = 4_000_000;

function lineDiff(before, after) {
  const [a, b] = [before.split("\n"), after.split("\n")];
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start += 1;
  let end = 0;
  while (end < a.length - start && end < b.length - start && a.at(-1 - end) === b.at(-1 - end)) end += 1;
  const same = (lines) => lines.map((line) => [" ", line]);
  const middle = changed(a.slice(start, a.length - end), b.slice(start, b.length - end));
  return [...same(a.slice(0, start)), ...middle, ...same(end ? a.slice(-end) : [])];
}

// Longest common subsequence. Two long texts with little in common are shown as one removal and one insertion.
function changed(a, b) {
  if (a.length * b.length > MAX_CELLS) return [...a.map((line) => ["-", line]), ...b.map((line) => ["+", line])];
  const width = b.length + 1;
  const common = new Uint16Array((a.length + 1) * width);
  for (let i = a.length - 1; i >= 0; i -= 1) {
    for (let j = b.length - 1; j >= 0; j -= 1) {
      common[i * width + j] =
        a[i] === b[j]
          ? common[(i + 1) * width + j + 1] + 1
          : Math.max(common[(i + 1) * width + j], common[i * width + j + 1]);
    }
  }
  const found = [];
  let [i, j] = [0, 0];
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) found.push([" ", a[((j += 1), i++)]]);
    else if (j >= b.length || (i < a.length && common[(i + 1) * width + j] >= common[i * width + j + 1]))
      found.push(["-", a[i++]]);
    else found.push(["+", b[j++]]);
  }
  return found;
}

// Keep changed lines and a few lines around them; gaps become null.
function hunks(lines, around = 3) {
  const near = new Set();
  lines.forEach(([kind], at) => {
    if (kind !== " ") for (let other = at - around; other <= at + around; other += 1) near.add(other);
  });
  const shown = [];
  lines.forEach((line, at) => {
    if (near.has(at)) shown.push(line);
    else if (shown.at(-1) !== null) shown.push(null);
  });
  return shown;
}
