// An alert with its choices as buttons.

import { capitalized } from "../format.js";
import { html } from "../view.js";
import { useFetched } from "../data/fetched.js";
import { wildAddress } from "../data/router.js";
import { mayWrite } from "../data/session.js";
import { answerAlert } from "../data/store.js";
import { Icon } from "../ui/icon.js";
import { Ago } from "../ui/time.js";
import { useVerb } from "../ui/verb.js";
import { Actor } from "./actor.js";
import { RunLink } from "./run_link.js";
import { SweepLink } from "./sweep_link.js";

const LISTED = 200;
const ICONS = { info: "info", warning: "triangle-alert", critical: "octagon-alert" };

export function Alert({ alert, withRun, onAnswered }) {
  return html`<article class="alert alert-${alert.severity}">
    <span class="alert-severity">
      <${Icon} name=${ICONS[alert.severity] ?? "info"} />
      ${alert.severity}
    </span>
    <div class="alert-body">
      <p class="alert-message">${alert.message}</p>
      <p class="muted small">
        ${alert.rule && html`<code>${alert.rule}</code> ·${" "}`}
        ${withRun && html`<${About} alert=${alert} /> ·${" "}`}
        <${Ago} time=${alert.created_at} />
      </p>
    </div>
    ${
      alert.status === "pending"
        ? html`<${Choices} alert=${alert} onAnswered=${onAnswered} />`
        : html`<p class="muted small">
          ${alert.answer} · <${Actor} actor=${alert.answered_by} /> · <${Ago} time=${alert.answered_at} />
        </p>`
    }
  </article>`;
}

function About({ alert }) {
  if (alert.run_id) return html`<${RunLink} id=${alert.run_id} />`;
  return alert.wild_id ? html`<${WildLink} id=${alert.wild_id} />` : html`<${SweepLink} id=${alert.sweep_id} />`;
}

// Use the list: a deleted loop is not an error.
function WildLink({ id }) {
  const { data } = useFetched("wild", { limit: LISTED });
  return html`<a href=${wildAddress(id)} title=${id}>
    ${data?.find((wild) => wild.id === id)?.goal ?? id}
  </a>`;
}

function Choices({ alert, onAnswered }) {
  const [busy, run] = useVerb({ refresh: onAnswered });
  const answer = (choice) =>
    run(() => answerAlert(alert, choice), {
      confirm: choice === "stop" ? STOP : undefined,
      done: `Answered: ${choice}.`,
    });
  if (!mayWrite()) return null;
  const choices = alert.choices?.length ? alert.choices : ["ignore"];
  return html`<div class="alert-choices" role="group" aria-label="Answer">
    ${choices.map(
      (choice) =>
        html`<button key=${choice} disabled=${busy} onClick=${() => answer(choice)}>
          ${capitalized(choice)}
        </button>`,
    )}
  </div>`;
}

const STOP = { title: "Stop the run?", text: "The run and all of its processes will be stopped.", verb: "Stop run" };
