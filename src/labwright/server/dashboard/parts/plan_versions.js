// Every text that was saved, and what changed from one to the next.

import { useFetched } from "../fetched.js";
import { hunks, lineDiff } from "../line_diff.js";
import { html, useMemo, useState } from "../ui.js";
import { Problem } from "./message.js";
import { Ago } from "./time.js";
import { Who } from "./who.js";

export function PlanVersions({ plan }) {
  const { data, problem, refresh } = useFetched(`plans/${encodeURIComponent(plan.id)}/versions`, { limit: 100 }, { wakes: (event) => event.data.plan_id === plan.id });
  const [picked, setPicked] = useState(null);
  if (problem && !data) return html`<${Problem} error=${problem} retry=${refresh} />`;
  if (!data) return html`<div class="loading" aria-busy="true"></div>`;
  const newer = data.find(({ version }) => version === picked?.[1]) ?? data[0];
  const older = data.find(({ version }) => version === picked?.[0]) ?? data[1];
  const choice = (label, current, onPick) => html`<label>${label} <select aria-label=${label} onChange=${(event) => onPick(Number(event.currentTarget.value))}>
    ${data.map(({ version }) => html`<option key=${version} value=${version} selected=${version === current}>${version}</option>`)}</select></label>`;
  return html`<section class="stack" aria-label="Versions">
    <ul class="lines">${data.map((one) => html`<li class="run-line" key=${one.version}><strong class="num">v${one.version}</strong><span class="version-title">${one.title}</span><span class="muted"><${Who} actor=${one.created_by} /></span><span class="muted run-line-time"><${Ago} time=${one.created_at} /></span></li>`)}</ul>
    ${older && html`<div class="controls controls-left">${choice("From version", older.version, (version) => setPicked([version, newer.version]))}${choice("to version", newer.version, (version) => setPicked([older.version, version]))}</div>
      <${Diff} before=${older.raw_markdown} after=${newer.raw_markdown} />`}
  </section>`;
}

const KIND = { "+": "hl-addition", "-": "hl-deletion", " ": "" };

export function Diff({ before, after }) {
  const lines = useMemo(() => hunks(lineDiff(before, after)), [before, after]);
  if (before === after) return html`<p class="muted">The same text.</p>`;
  return html`<pre class="code diff" tabindex="0" role="region" aria-label="What changed">${lines.map((line, at) =>
    line ? html`<span key=${at} class="diff-line ${KIND[line[0]]}">${line[0]} ${line[1]}\n</span>` : html`<span key=${at} class="muted">⋯\n</span>`)}</pre>`;
}
