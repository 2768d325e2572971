// An approval request of an agent: the exact action, and buttons to answer it.

import { html, useState } from "../view.js";
import { post } from "../data/api.js";
import { isPerson } from "../data/session.js";
import { Code } from "../ui/code.js";
import { Icon } from "../ui/icon.js";
import { Ago } from "../ui/time.js";
import { useVerb } from "../ui/verb.js";
import { Actor } from "./actor.js";

export function Approval({ approval }) {
  const { status, question, action } = approval;
  return html`<div class="approval approval-${status}" role="group" aria-label="Approval">
    <p class="approval-question">
      <${Icon} name=${status === "pending" ? "hourglass" : status === "approved" ? "circle-check" : "circle-slash"} />
      <strong>${question}</strong>
    </p>
    ${
      action?.tool &&
      html`<${Code}
        text="${action.tool} ${JSON.stringify(action.arguments, null, 2)}"
        language="json"
        label="Requested action"
      />`
    }
    ${
      status === "pending"
        ? html`<${Answer} approval=${approval} />`
        : html`<p class="muted small">
          ${status}
          ${
            approval.answered_by &&
            html`${" "}
            by <${Actor} actor=${approval.answered_by} />`
          }
          ${approval.reason ? `: ${approval.reason}` : ""} · <${Ago} time=${approval.answered_at} />
        </p>`
    }
  </div>`;
}

function Answer({ approval }) {
  const [busy, run] = useVerb();
  const [reason, setReason] = useState("");
  const answer = (approved) => {
    const body = { approved, ...(reason.trim() && { reason }) };
    run(() => post(`approvals/${encodeURIComponent(approval.id)}/respond`, body), { keepBusy: true });
  };
  if (!isPerson()) return html`<p class="muted">Only a person can answer this.</p>`;
  return html`<div class="approval-verbs">
    <input
      type="text"
      aria-label="Reason"
      placeholder="Reason (optional)"
      maxlength="4000"
      value=${reason}
      onInput=${(event) => setReason(event.currentTarget.value)}
    />
    <button class="primary" disabled=${busy} onClick=${() => answer(true)}>
      Approve
    </button>
    <button disabled=${busy} onClick=${() => answer(false)}>
      Deny
    </button>
  </div>`;
}
