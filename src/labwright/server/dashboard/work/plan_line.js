// A plan as one line, and as a card if it needs attention.

import { html } from "../view.js";
import { planAddress } from "../data/router.js";
import { Icon } from "../ui/icon.js";
import { Ago } from "../ui/time.js";
import { StatusLabel } from "./status.js";

const ATTENTION = {
  answers: { short: "needs input", text: "Planning cannot continue without your answers.", verb: "Answer questions" },
  review: {
    short: "needs review",
    text: "Waiting for review. Nothing runs before a person approves it.",
    verb: "Review plan",
  },
};

export const PlanLine = ({ plan, children }) =>
  html`<li class="run-line">
    <${StatusLabel} status=${plan.status} reason=${plan.status_reason} />
    <a href=${planAddress(plan.id)} title=${plan.title}>
      ${plan.title}
    </a>
    <${PlanState} plan=${plan} />
    ${children}
    <span class="muted run-line-time">
      <${Ago} time=${plan.updated_at} />
    </span>
  </li>`;

function PlanState({ plan }) {
  if (plan.compiling_by) return html`<span class="status status-running">planning</span>`;
  return (
    ATTENTION[plan.asks] &&
    html`<span class="status status-waiting">
      <${Icon} name="hourglass" size="14" />
      ${ATTENTION[plan.asks].short}
    </span>`
  );
}

export const needsAttention = (plan) => plan.status === "draft" && plan.asks in ATTENTION;

export const PlanCard = ({ plan }) =>
  html`<article class="alert alert-warning" aria-label="Plan">
    <span class="alert-severity">
      <${Icon} name="workflow" />
      plan
    </span>
    <div class="alert-body">
      <p class="alert-message">${plan.title}</p>
      <p class="muted small">
        ${ATTENTION[plan.asks].text} <${Ago} time=${plan.updated_at} />
      </p>
    </div>
    <a class="button" href=${planAddress(plan.id)}>
      ${ATTENTION[plan.asks].verb}
    </a>
  </article>`;
