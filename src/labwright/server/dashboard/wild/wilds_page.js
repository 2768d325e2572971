// All loops, and a form that starts one.

import { number } from "../format.js";
import { html, useRef, useState } from "../view.js";
import { newKey, post } from "../data/api.js";
import { useFetched, eventTypes } from "../data/fetched.js";
import { useListKeys } from "../data/keyboard.js";
import { go, wildAddress } from "../data/router.js";
import { mayWrite } from "../data/session.js";
import { useTitle } from "../data/window_title.js";
import { useDraft } from "../ui/drafts.js";
import { Icon } from "../ui/icon.js";
import { Message, Problem } from "../ui/message.js";
import { Ago } from "../ui/time.js";
import { useVerb } from "../ui/verb.js";
import { StatusLabel } from "../work/status.js";
import { BudgetFields, budgetOf } from "./budget.js";

export default function WildsPage() {
  useTitle("Wild");
  const { data, problem, refresh } = useFetched("wild", { limit: 200 }, { refreshOn: eventTypes("wild.") });
  const box = useRef(null);
  useListKeys(box);
  if (problem && !data) return html`<${Problem} error=${problem} retry=${refresh} />`;
  return html`<div class="page list-page">
    <header class="page-head">
      <h1>Wild</h1>
    </header>
    <${Start} />
    ${!data && html`<div class="loading" aria-busy="true"></div>`}
    ${
      data?.length > 0 &&
      html`<ul class="lines" ref=${box}>
        ${data.map(
          (wild) =>
            html`<li class="run-line" key=${wild.id}>
              <${StatusLabel} status=${wild.status} reason=${wild.status_reason} />
              <a href=${wildAddress(wild.id)} title=${wild.goal}>
                ${wild.goal}
              </a>
              <span class="num muted">${wild.iterations.length} tries</span>
              <span class="num muted">
                ${wild.used.runs}
                ${wild.budget.runs ? ` of ${number(wild.budget.runs)}` : ""} runs
              </span>
              ${
                wild.best &&
                html`<span class="num" title=${wild.best.mean}>
                  <span class="muted">${wild.metric.key}</span> <strong>${number(wild.best.mean)}</strong>
                </span>`
              }
              <span class="muted run-line-time">
                <${Ago} time=${wild.created_at} />
              </span>
            </li>`,
        )}
      </ul>`
    }
    ${
      data &&
      !data.length &&
      html`<${Message} icon="compass" title="No loops yet">
        <p class="muted">
          A loop measures a baseline, then tries ideas and keeps those that are better by more than noise, until it
          meets the goal, uses up the budget or finds no improvement.
        </p>
        <pre class="teach">labwright wild "reach val_acc 0.9 by tuning lr" --max-runs 40</pre>
      </${Message}>`
    }
  </div>`;
}

function Start() {
  const [goal, setGoal] = useDraft("goal of a loop", "");
  const [budget, setBudget] = useState({});
  const [more, setMore] = useState({ script: "", protect: "" });
  const [problem, setProblem] = useState(null);
  const [busy, run] = useVerb({ onError: setProblem });
  const key = useRef(newKey());
  const changed = (set) => (value) => (set(value), setProblem(null), (key.current = newKey()));
  const start = async () => {
    const protect = more.protect
      .split(",")
      .map((path) => path.trim())
      .filter(Boolean);
    const given = budgetOf(budget);
    const body = {
      goal: goal.trim(),
      protect,
      ...(more.script.trim() && { script: more.script.trim() }),
      ...(Object.keys(given).length && { budget: given }),
    };
    const { id } = await post("wild/start", body, key.current);
    setGoal("");
    go(wildAddress(id));
  };
  const submit = (event) => {
    event.preventDefault();
    run(start, { keepBusy: true });
  };
  if (!mayWrite()) return null;
  return html`<form class="wild-start" onSubmit=${submit} aria-label="Start a loop">
    <div class="goal-box">
      <label class="goal-field">
        <${Icon} name="compass" />
        <input
          type="text"
          aria-label="Goal"
          placeholder="What to reach and what to vary, for example: reach val_acc 0.9 by tuning lr"
          value=${goal}
          maxlength="20000"
          onInput=${(event) => changed(setGoal)(event.currentTarget.value)}
        />
      </label>
      <button class="primary" disabled=${busy || !goal.trim()}>
        Start loop
      </button>
    </div>
    ${
      problem &&
      html`<p class="hint-line hint-bad page-inset" role="alert">
        ${problem.message} <span class="muted">${problem.hint}</span>
      </p>`
    }
    <details class="evidence page-inset">
      <summary>Budget and limits</summary>
      <div class="by-hand">
        <${BudgetFields} value=${budget} onChange=${changed(setBudget)} />
        <label class="field">
          Script
          <input
            type="text"
            placeholder="from the goal"
            value=${more.script}
            onInput=${(event) => changed(setMore)({ ...more, script: event.currentTarget.value })}
          />
        </label>
        <label class="field">
          Protected files
          <input
            type="text"
            placeholder="eval.py, data/test"
            value=${more.protect}
            onInput=${(event) => changed(setMore)({ ...more, protect: event.currentTarget.value })}
          />
        </label>
      </div>
    </details>
  </form>`;
}
