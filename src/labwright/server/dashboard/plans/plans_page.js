// All plans, newest first, and a box to type a goal.

import { html, useRef } from "../view.js";
import { useFetched, eventTypes } from "../data/fetched.js";
import { useListKeys } from "../data/keyboard.js";
import { route, setQuery } from "../data/router.js";
import { useTitle } from "../data/window_title.js";
import { Message, Problem } from "../ui/message.js";
import { GoalBox } from "../work/goal_box.js";
import { PlanLine } from "../work/plan_line.js";

const FILTERS = { "": "All", "completed,failed": "Ended", archived: "Archived" };

export default function PlansPage() {
  useTitle("Plans");
  const requested = route.value.query.get("show") ?? "";
  const status = Object.hasOwn(FILTERS, requested) ? requested : "";
  const { data, problem, refresh } = useFetched("plans", { status, limit: 500 }, { refreshOn: eventTypes("plan.") });
  const box = useRef(null);
  useListKeys(box);
  if (problem && !data) return html`<${Problem} error=${problem} retry=${refresh} />`;
  return html`<div class="page list-page">
    <header class="page-head">
      <h1>Plans</h1>
      <div class="chips" role="group" aria-label="Status filter">
        ${Object.entries(FILTERS).map(
          ([name, label]) =>
            html`<button
              class="chip"
              key=${name}
              aria-pressed=${String(name === status)}
              onClick=${() => setQuery({ show: name })}
            >
              ${label}
            </button>`,
        )}
      </div>
    </header>
    <${GoalBox} />
    ${!data && html`<div class="loading" aria-busy="true"></div>`}
    ${
      data?.length > 0 &&
      html`<ul class="lines" ref=${box}>
        ${data.map(
          (plan) =>
            html`<${PlanLine} key=${plan.id} plan=${plan}>
              <span class="muted run-line-why" title=${plan.goal}>
                ${plan.goal}
              </span>
              <span class="muted num">v${plan.version}</span>
            </${PlanLine}>`,
        )}
      </ul>`
    }
    ${
      data &&
      !data.length &&
      html`<${Message} icon="workflow" title=${status ? "No matching plans" : "No plans yet"}>
        <p class="muted">
          A plan says what to try, how to measure it and what it costs. Enter a goal above, or save your own document:
        </p>
        <pre class="teach">labwright plan save plan.md</pre>
      </${Message}>`
    }
  </div>`;
}
