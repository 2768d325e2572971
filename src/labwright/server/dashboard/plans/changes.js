// The files that changed between two compilations, or between a compilation and the current files.

import { html, useState } from "../view.js";
import { useFetched } from "../data/fetched.js";
import { Code } from "../ui/code.js";
import { Icon } from "../ui/icon.js";
import { Problem } from "../ui/message.js";

const NOW = "now";
const ICONS = { added: "plus", removed: "trash", changed: "pencil" };
const ofPlan = (plan) => ({ refreshOn: (event) => event.data.plan_id === plan.id });

export function PlanChanges({ plan, digest }) {
  const path = `plans/${encodeURIComponent(plan.id)}`;
  const { data: made } = useFetched(`${path}/compilations`, {}, ofPlan(plan));
  const [picked, setPicked] = useState({});
  if (!made?.length) return null;
  const edited = made[0].digest !== digest; // files were edited after the last compilation
  const after = picked.after ?? (edited ? NOW : String(made[0].number));
  const earlier = made.filter(({ number }) => after === NOW || number < Number(after));
  const before = earlier.find(({ number }) => String(number) === picked.before) ?? earlier[0];
  return html`<section class="card stack" aria-label="Changes">
    <div class="section-head">
      <h2>Changes</h2>
      ${
        before &&
        html`<span class="controls controls-left">
          <${Pick}
            label="From"
            made=${earlier}
            value=${String(before.number)}
            onPick=${(value) => setPicked({ after, before: value })}
          />
          <${Pick}
            label="To"
            made=${made.slice(0, edited ? undefined : -1)}
            now=${edited}
            value=${after}
            onPick=${(value) => setPicked({ after: value })}
          />
        </span>`
      }
    </div>
    ${
      before
        ? html`<${Files}
          key="${before.number} ${after}"
          plan=${plan}
          path=${path}
          before=${before.number}
          after=${after}
        />`
        : html`<p class="muted">
          This is the first compilation. Later compilations show here what changed.
        </p>`
    }
  </section>`;
}

const Pick = ({ label, made, now, value, onPick }) =>
  html`<label>
    ${label}${" "}
    <select aria-label="${label} compilation" onChange=${(event) => onPick(event.currentTarget.value)}>
      ${
        now &&
        html`<option value=${NOW} selected=${value === NOW}>
          current files
        </option>`
      }
      ${made.map(
        ({ number, digest, by, passed }) =>
          html`<option key=${number} value=${number} selected=${String(number) === value}>
            ${number} · ${digest.slice(0, 8)} · ${by.split(":")[0]}
            ${passed ? "" : " · validation failed"}
          </option>`,
      )}
    </select>
  </label>`;

function Files({ plan, path, before, after }) {
  const { data, problem, refresh } = useFetched(
    `${path}/changes`,
    after === NOW ? { before } : { before, after },
    ofPlan(plan),
  );
  if (problem && !data) return html`<${Problem} error=${problem} retry=${refresh} />`;
  if (!data) return html`<div class="loading" aria-busy="true"></div>`;
  if (!data.files.length && !data.beside.length) return html`<p class="muted">No changes.</p>`;
  return html`${
    data.beside.length > 0 &&
    html`<ul class="muted notes-list">
      ${data.beside.map((note) => html`<li key=${note}>${note}</li>`)}
    </ul>`
  }
  ${data.files.map(
    ({ path: file, kind, diff }, at) =>
      html`<details key=${file} class="file-change" open=${at < 3}>
        <summary>
          <${Icon} name=${ICONS[kind]} size="12" />
          <code>${file}</code>${" "}
          <span class="muted">
            ${kind}
            ${counts(diff)}
          </span>
        </summary>
        <${Code} text=${diff} language="diff" label="Changes in ${file}" />
      </details>`,
  )}`;
}

function counts(diff) {
  const lines = diff.split("\n");
  const of = (mark) => lines.filter((line) => line.startsWith(mark)).length;
  return `, +${of("+")} −${of("-")}`;
}
