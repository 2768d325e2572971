// What an agent may not do by itself: shown exactly as it would be carried out, and answered on the spot.

import { post } from "../data/api.js";
import { isPerson } from "../data/session.js";
import { html, useState } from "../view.js";
import { Code } from "../ui/code.js";
import { Icon } from "../ui/icon.js";
import { Ago } from "../ui/time.js";
import { sayError } from "../ui/toast.js";
import { Who } from "./who.js";

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
        label="Exactly this will be done"
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
            by <${Who} actor=${approval.answered_by} />`
          }
          ${approval.reason ? `: ${approval.reason}` : ""} · <${Ago} time=${approval.answered_at} />
        </p>`
    }
  </div>`;
}

function Answer({ approval }) {
  const [busy, setBusy] = useState(false);
  const [reason, setReason] = useState("");
  const answer = async (approved) => {
    setBusy(true);
    try {
      await post(`approvals/${encodeURIComponent(approval.id)}/respond`, {
        approved,
        ...(reason.trim() && { reason }),
      });
    } catch (error) {
      sayError(error);
      setBusy(false);
    }
  };
  if (!isPerson()) return html`<p class="muted">Only a person can answer this.</p>`;
  return html`<div class="approval-verbs">
    <input
      type="text"
      aria-label="Reason"
      placeholder="Reason, if you like"
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
