// A plan as one line, and the card of one that waits for a person.

import { planAddress } from "../data/router.js";
import { html } from "../view.js";
import { Icon } from "../ui/icon.js";
import { Ago } from "../ui/time.js";
import { StatusWord } from "./status.js";

const ASKS = {
  answers: { short: "asks you", words: "Planning needs to know something before it can go on.", verb: "Answer" },
  review: {
    short: "to review",
    words: "It waits for a review. Nothing runs before a person approves it.",
    verb: "Review plan",
  },
};

export const PlanLine = ({ plan, children }) =>
  html`<li class="run-line">
    <${StatusWord} status=${plan.status} reason=${plan.status_reason} />
    <a href=${planAddress(plan.id)} title=${plan.title}>
      ${plan.title}
    </a>
    <${Standing} plan=${plan} />
    ${children}
    <span class="muted run-line-time">
      <${Ago} time=${plan.updated_at} />
    </span>
  </li>`;

function Standing({ plan }) {
  if (plan.compiling_by) return html`<span class="status status-running">being planned</span>`;
  return (
    ASKS[plan.asks] &&
    html`<span class="status status-waiting">
      <${Icon} name="hourglass" size="14" />
      ${ASKS[plan.asks].short}
    </span>`
  );
}

export const waitsForSomebody = (plan) => plan.status === "draft" && plan.asks in ASKS;

export const PlanAsks = ({ plan }) =>
  html`<article class="alert alert-warning" aria-label="Plan">
    <span class="alert-severity">
      <${Icon} name="workflow" />
      plan
    </span>
    <div class="alert-body">
      <p class="alert-message">${plan.title}</p>
      <p class="muted small">
        ${ASKS[plan.asks].words} <${Ago} time=${plan.updated_at} />
      </p>
    </div>
    <a class="button" href=${planAddress(plan.id)}>
      ${ASKS[plan.asks].verb}
    </a>
  </article>`;
