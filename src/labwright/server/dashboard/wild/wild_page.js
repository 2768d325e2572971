// The page of one loop: its tries, results and budget, and a field to steer it.

import { number, text } from "../format.js";
import { html, useRef } from "../view.js";
import { newKey, post } from "../data/api.js";
import { useFetched } from "../data/fetched.js";
import { useKeys } from "../data/keyboard.js";
import { chatAddress, go, runAddress, sweepAddress } from "../data/router.js";
import { mayWrite } from "../data/session.js";
import { useTitle } from "../data/window_title.js";
import { LINKED } from "../ui/cited_text.js";
import { Copy } from "../ui/copy.js";
import { useDraft } from "../ui/drafts.js";
import { Icon } from "../ui/icon.js";
import { Markdown } from "../ui/markdown.js";
import { Message, Problem } from "../ui/message.js";
import { Tabs } from "../ui/tabs.js";
import { Ago } from "../ui/time.js";
import { useVerb } from "../ui/verb.js";
import { Actor } from "../work/actor.js";
import { StatusLabel } from "../work/status.js";
import { BudgetUse } from "./budget.js";
import { useOpenRuns, waitingText, WildTree } from "./tree.js";
import { isEnded, WildVerbs } from "./verbs.js";

export default function WildPage({ id }) {
  const path = `wild/${encodeURIComponent(id)}`;
  const { data: wild, problem, refresh } = useFetched(path, {}, { refreshOn: (event) => event.data.wild_id === id });
  const open = useOpenRuns(wild);
  useKeys({ Escape: () => go("#/wild") });
  useTitle(wild ? `${wild.status} · ${wild.goal}` : "Wild");
  if (problem && !wild) return html`<${Problem} error=${problem} />`;
  if (!wild) return html`<div class="loading" aria-busy="true"></div>`;
  const tabs = [
    {
      name: "iterations",
      label: `Iterations (${wild.iterations.length})`,
      show: () => html`<${Overview} wild=${wild} open=${open} refresh=${refresh} />`,
    },
    { name: "report", label: "Report", show: () => html`<${Report} wild=${wild} />` },
    { name: "details", label: "Details", show: () => html`<${Details} wild=${wild} />` },
  ];
  return html`<div class="page run-page">
    <${Header} wild=${wild} open=${open} refresh=${refresh} />
    <${Tabs} tabs=${tabs} label="Loop" />
  </div>`;
}

function Header({ wild, open, refresh }) {
  const reason = wild.status_reason || (wild.status === "waiting" && open && waitingText(open));
  return html`<header class="run-head">
    <a class="back" href="#/wild">
      <${Icon} name="arrow-left" size="14" />
      Wild
    </a>
    <div class="run-title">
      <h1>${wild.goal}</h1>
      <${StatusLabel} status=${wild.status} reason=${reason} />
      <${WildVerbs} wild=${wild} refresh=${refresh} />
    </div>
    ${reason && html`<p class="run-reason run-reason-${wild.status}">${reason}</p>`}
    <dl class="facts">
      <div>
        <dt>Id</dt>
        <dd>
          <${Copy} text=${wild.id} label="Copy id" />
        </dd>
      </div>
      <div>
        <dt>Goal</dt>
        <dd>${wild.criterion.text}</dd>
      </div>
      <div>
        <dt>Script</dt>
        <dd>
          <code>${wild.script}</code>
        </dd>
      </div>
      <div>
        <dt>Search</dt>
        <dd>${wild.search}</dd>
      </div>
      <div>
        <dt>Runs</dt>
        <dd>
          <a href=${sweepAddress(wild.sweep_id)}>open sweep</a>
        </dd>
      </div>
      ${
        wild.session_id &&
        html`<div>
          <dt>Conversation</dt>
          <dd>
            <a href=${chatAddress(wild.session_id)}>open</a>
          </dd>
        </div>`
      }
      <div>
        <dt>Started</dt>
        <dd>
          <${Ago} time=${wild.created_at} /> by <${Actor} actor=${wild.created_by} />
        </dd>
      </div>
      ${
        wild.ended_at &&
        html`<div>
          <dt>Ended</dt>
          <dd>
            <${Ago} time=${wild.ended_at} />
          </dd>
        </div>`
      }
    </dl>
  </header>`;
}

const Overview = ({ wild, open, refresh }) =>
  html`<div class="wild-grid">
    <div class="stack">
      <${WildTree} wild=${wild} open=${open} />
    </div>
    <div class="stack wild-side">
      <${Found} wild=${wild} />
      <${BudgetUse} wild=${wild} />
      <${Steer} wild=${wild} refresh=${refresh} />
    </div>
  </div>`;

function Found({ wild }) {
  const { best, baseline, metric } = wild;
  const line = (label, found) =>
    found &&
    html`<div>
      <h3>${label}</h3>
      <p class="best-value num">
        <strong title=${found.mean}>${number(found.mean)}</strong>${" "}
        <span class="muted">${found.n > 1 ? `± ${number(found.std)}, n = ${found.n}` : "n = 1"}</span>
      </p>
      <p>
        ${Object.entries(found.params).map(
          ([name, value]) =>
            html`<code key=${name}>
              ${name}=${text(value)}
            </code>${" "}`,
        )}
      </p>
      <p class="small">
        <a href=${runAddress(found.run_id)}>iteration ${found.number}</a>
      </p>
    </div>`;
  return html`<section class="card stack" aria-label="Results">
    <h2>
      ${metric.key} <span class="muted small">${metric.goal === "min" ? "minimize" : "maximize"}</span>
    </h2>
    ${line("Best", best?.number === baseline?.number ? null : best)}
    ${line("Baseline", baseline)}
    ${!baseline && html`<p class="muted">No results yet.</p>`}
  </section>`;
}

function Steer({ wild, refresh }) {
  const [text, setText] = useDraft(`steering ${wild.id}`, "");
  const key = useRef(newKey());
  const [busy, run] = useVerb({ refresh });
  const send = async () => {
    await post(`wild/${encodeURIComponent(wild.id)}/steer`, { text: text.trim() }, key.current);
    key.current = newKey();
    setText("");
  };
  const submit = (event) => {
    event.preventDefault();
    run(send, { done: "The next idea will consider this." });
  };
  const isOpen = mayWrite() && !isEnded(wild);
  if (!isOpen && !wild.steering.length) return null;
  return html`<section class="card stack" aria-label="Steer">
    <h2>Steer</h2>
    ${
      isOpen &&
      html`<form class="stack" onSubmit=${submit}>
        <textarea
          class="notes-field"
          rows="2"
          aria-label="Instruction"
          placeholder=${wild.search === "rules" ? "lr 0.05 to 0.2" : "Try a smaller learning rate, keep the width"}
          maxlength="4000"
          value=${text}
          onInput=${(event) => (setText(event.currentTarget.value), (key.current = newKey()))}
        ></textarea>
        <div>
          <button class="primary" disabled=${busy || !text.trim()}>
            Steer
          </button>
        </div>
      </form>`
    }
    ${
      wild.steering.length > 0 &&
      html`<ul class="notes-list">
        ${[...wild.steering].reverse().map(
          (one, at) =>
            html`<li key=${at}>
              ${one.text}${" "}
              <span class="muted small">
                ${one.taken_in === null ? "not used yet" : `used in iteration ${one.taken_in}`} ·${" "}
                <${Ago} time=${one.at} />
              </span>
            </li>`,
        )}
      </ul>`
    }
  </section>`;
}

function Report({ wild }) {
  if (!wild.report)
    return html`<${Message} icon="file-text" title="No report yet">
      <p class="muted">The report is written when the loop ends.</p>
    </${Message}>`;
  return html`<article class="card document">
    <${Markdown} text=${wild.report} draw=${LINKED} />
  </article>`;
}

function spaceText(space) {
  if (Array.isArray(space)) return space.map(text).join(", ");
  const { min, max, log, int } = space;
  if (min === undefined || max === undefined) return text(space);
  return [`${number(min)} to ${number(max)}`, int && "integers", log && "log scale"].filter(Boolean).join(", ");
}

function Details({ wild }) {
  const table = (title, rows) =>
    rows.length > 0 &&
    html`<section class="card">
      <h2>${title}</h2>
      <table class="pairs">
        <tbody>
          ${rows.map(
            ([name, value]) =>
              html`<tr key=${name}>
                <th scope="row">${name}</th>
                <td>${value}</td>
              </tr>`,
          )}
        </tbody>
      </table>
    </section>`;
  return html`<div class="details">
    ${table(
      "Search space",
      Object.entries(wild.parameters).map(([name, space]) => [name, spaceText(space)]),
    )}
    ${table(
      "Fixed parameters",
      Object.entries(wild.fixed).map(([name, value]) => [name, text(value)]),
    )}
    ${table("Seeds", wild.seeds.length ? [["seeds", wild.seeds.join(", ")]] : [])}
    ${table(
      "Protected files",
      wild.protected.map(({ path, sha256, reason }) => [
        path,
        html`<${Copy} text=${sha256} shown=${sha256.slice(0, 8)} label="Copy digest" />${" "}
        <span class="muted">${reason}</span>`,
      ]),
    )}
    ${
      wild.notes.length > 0 &&
      html`<section class="card">
        <h2>Notes</h2>
        <ul class="notes-list">
          ${wild.notes.map((note) => html`<li key=${note}>${note}</li>`)}
        </ul>
      </section>`
    }
  </div>`;
}
