// The review of a plan: progress, questions, validation, rehearsal, and the decision, which is bound to one digest.

import { bytes, counted, duration } from "../format.js";
import { html } from "../view.js";
import { post } from "../data/api.js";
import { useFetched, eventTypes } from "../data/fetched.js";
import { isPerson, mayWrite } from "../data/session.js";
import { Copy } from "../ui/copy.js";
import { useDraft, useFormDraft } from "../ui/drafts.js";
import { Icon } from "../ui/icon.js";
import { Problem } from "../ui/message.js";
import { showError } from "../ui/toast.js";
import { useVerb } from "../ui/verb.js";
import { Actor } from "../work/actor.js";
import { RunLines } from "../work/run_link.js";
import { SweepLine } from "../work/sweep_link.js";
import { PlanChanges } from "./changes.js";

const ICONS = {
  pending: "circle-dashed",
  started: "loader",
  finished: "circle-check",
  failed: "circle-x",
  suspended: "hourglass",
  retried: "rotate-cw",
  skipped: "circle-slash",
};
const KINDS = {
  started: "running",
  finished: "finished",
  failed: "failed",
  suspended: "waiting",
  retried: "waiting",
};
const EMPTY_REJECTION = { text: "", before: "", node: "" };
const UNDECIDABLE = new Set(["new", "compiling", "needs_input"]); // the plan is incomplete
const NOT_REPEATABLE = new Set(["HumanReview", "FinalHandoffCheck"]);

export function PlanReview({ plan, workspace, refresh }) {
  const { planning } = plan;
  const path = `plans/${encodeURIComponent(plan.id)}`;
  return html`<div class="review">
    <div class="stack">
      ${plan.compiling_by && html`<${PlanningProgress} progress=${planning.progress} />`}
      ${
        planning.error &&
        html`<p class="hint-line hint-bad">
          <${Icon} name="octagon-alert" size="14" /> ${planning.status === "rejected" ? "Rejected: " : ""}
          ${planning.error}
        </p>`
      }
      ${
        planning.questions.length > 0 &&
        planning.status === "needs_input" &&
        html`<${Questions} path=${path} questions=${planning.questions} refresh=${refresh} />`
      }
      ${
        workspace.problem &&
        !workspace.data &&
        !plan.compiling_by &&
        html`<${Problem} error=${workspace.problem} retry=${workspace.refresh} />`
      }
      ${
        !workspace.data &&
        !workspace.problem &&
        !plan.compiling_by &&
        html`<div class="loading" aria-busy="true"></div>`
      }
      ${
        workspace.data &&
        !UNDECIDABLE.has(planning.status) &&
        html`<${Decision}
          plan=${plan}
          path=${path}
          workspace=${workspace.data}
          refresh=${() => (refresh(), workspace.refresh())}
        />
        <${Validation} validation=${workspace.data.validation} />
        <${Rehearsal} rehearsal=${workspace.data.rehearsal} />
        <${PlanChanges} plan=${plan} digest=${workspace.data.digest} />`
      }
    </div>
    <div class="stack">
      ${
        planning.steps.length > 0 &&
        html`<${Steps} title="Execution" steps=${planning.steps.map((one) => ({ ...one, name: one.step }))} />`
      }
      ${(plan.compiling_by || planning.steps.length > 0) && html`<${PlanWork} plan=${plan} />`}
      <${Steps}
        title="Planning"
        steps=${planning.progress.map((one) => ({
          ...one,
          ...outcome(one, workspace.data?.validation),
          name: one.node,
        }))}
      />
    </div>
  </div>`;
}

// Show a finished validation with findings as failed.
const outcome = ({ node, status }, validation) =>
  node === "ValidateWorkspace" && status === "finished" && validation?.passed === false
    ? { status: "failed", message: counted(validation.findings.length, "finding") }
    : {};

function PlanningProgress({ progress }) {
  const now = progress.find(({ status }) => status === "started");
  const isDecided = progress.some(({ node, status }) => node === "HumanReview" && status === "finished");
  const next = isDecided
    ? "The plan is approved. You can execute it when the checks pass."
    : "The decision appears here when planning is done. Nothing runs before you approve it.";
  return html`<section class="card stack" aria-label="Planning in progress">
    <h2>${isDecided ? "Final checks" : "Planning in progress"}</h2>
    <p class="muted">
      ${now ? `Current step: ${stepName(now.node)}.` : "Starting."} ${next}
    </p>
  </section>`;
}

const stepName = (name) => name.replaceAll(/([a-z])([A-Z])/g, "$1 $2").replaceAll("_", " ");

const Steps = ({ title, steps }) =>
  html`<section class="card" aria-label=${title}>
    <h2>${title}</h2>
    <ol class="steps">
      ${steps.map(
        ({ name, status, seconds, message }) =>
          html`<li key=${name} class="status status-${KINDS[status] ?? "stopped"}">
            <${Icon} name=${ICONS[status] ?? "circle-dashed"} />
            <span class="step-name">
              ${stepName(name)}
              <span class="hidden">: ${status}</span>
              ${message && html`<span class="step-why">${message}</span>`}
            </span>
            <span class="muted num">${seconds === null || seconds === undefined ? "" : duration(seconds)}</span>
          </li>`,
      )}
    </ol>
  </section>`;

function Questions({ path, questions, refresh }) {
  const { fields, set, clear } = useFormDraft(`answers ${path}`);
  const answers = questions.map(({ text }) => fields[text] ?? "").filter((answer) => answer.trim());
  const [busy, run] = useVerb({ refresh });
  const submit = (event) => {
    event.preventDefault();
    run(() => post(`${path}/compile`, { answers }).then(clear), { done: "Planning continues." });
  };
  return html`<form class="card stack" aria-label="Questions" onSubmit=${submit}>
    <h2>Questions</h2>
    ${questions.map(
      ({ text, suggestions }, at) =>
        html`<label class="field" key=${at}>
          ${text}
          <input type="text" value=${fields[text] ?? ""} onInput=${(event) => set(text, event.currentTarget.value)} />
          ${
            suggestions.length > 0 &&
            html`<span class="chips">
              ${suggestions.map(
                (one) =>
                  html`<button type="button" class="chip" key=${one} onClick=${() => set(text, one)}>
                    ${one}
                  </button>`,
              )}
            </span>`
          }
        </label>`,
    )}
    ${
      mayWrite() &&
      html`<div>
        <button class="primary" disabled=${busy || !answers.length}>
          Send answers
        </button>
      </div>`
    }
  </form>`;
}

function Decision({ plan, path, workspace, refresh }) {
  const [busy, run] = useVerb({ refresh, onError: (error) => (showError(error), refresh()) });
  const [rejection, setRejection, dropRejection] = useDraft(`rejection ${plan.id}`);
  const { planning } = plan;
  const { approval } = planning;
  const review = (body, done) => run(() => post(`${path}/review`, body).then(() => setRejection(null)), { done });
  const isOpen = plan.status === "draft" && !plan.compiling_by;
  const canReject = isPerson() && (isOpen || (plan.status === "approved" && !plan.compiling_by));
  return html`<section class="card stack" aria-label="Decision">
    <h2>Decision</h2>
    <p>
      Digest:${" "}
      <${Copy} text=${workspace.digest} shown=${workspace.digest.slice(0, 8)} label="Copy digest" />${" "}
      <span class="muted">
        covers the plan, its IR, code and tests, the project's code, the environment and the commands.
      </span>
    </p>
    ${
      approval &&
      html`<p class="status status-finished">
        <${Icon} name="check" />
        approved ${approval.automatic ? "automatically " : ""}by <${Actor} actor=${approval.by} />
        ${approval.reason && ` (${approval.reason})`}:${" "}
        <code title=${approval.digest}>${approval.digest.slice(0, 8)}</code>
      </p>`
    }
    <${Changed} since="validation (validate again first)" what=${workspace.changed_since_validation} />
    <${Changed} since="approval" what=${workspace.changed_since_approval} />
    ${!planning.validated && html`<${NotValidated} validation=${workspace.validation} />`}
    ${
      canReject &&
      html`<div class="verbs verbs-left">
        ${
          isOpen &&
          html`<button
            class="primary"
            disabled=${busy || workspace.changed_since_validation.length > 0}
            onClick=${() => review({ approved: true, digest: workspace.digest }, "Plan approved.")}
          >
            <${Icon} name="check" size="14" />
            Approve this plan
          </button>`
        }
        <button
          disabled=${busy}
          aria-expanded=${String(Boolean(rejection))}
          onClick=${() => (rejection ? dropRejection() : setRejection(EMPTY_REJECTION))}
        >
          <${Icon} name="pencil" size="14" />
          Reject or request changes
        </button>
      </div>`
    }
    ${
      canReject &&
      rejection &&
      html`<${Rejection}
        draft=${rejection}
        setDraft=${setRejection}
        nodes=${planning.progress.map(({ node }) => node).filter((node) => !NOT_REPEATABLE.has(node))}
        model=${planning.model}
        busy=${busy}
        onSave=${(body) => review({ approved: false, ...body }, body.node ? "Repeating the step." : "Plan rejected.")}
      />`
    }
  </section>`;
}

const NotValidated = ({ validation }) =>
  validation?.passed === false
    ? html`<p class="hint-line hint-bad">
      <${Icon} name="circle-x" size="14" />
      ${" "}Validation has ${counted(validation.findings.length, "finding")}, below.${" "}
      <span class="muted">An approval is recorded, but the plan cannot run before it is valid.</span>
    </p>`
    : html`<p class="muted">
      Not validated. An approval is recorded, but the plan cannot run before it is validated.
    </p>`;

const Changed = ({ since, what }) =>
  what.length > 0 &&
  html`<div class="hint-line">
    Changed since ${since}:${" "}
    <ul>
      ${what.map((one) => html`<li key=${one}>${one}</li>`)}
    </ul>
  </div>`;

// Whether a step uses the reason of a rejection. Steps that follow from the draft, and templates, do not.
const readsReasons = (node, model) =>
  node.startsWith("Draft") || (/^(GenerateTask|Validate)/.test(node) && !model.startsWith("offline rules"));

function Rejection({ draft, setDraft, nodes, model, busy, onSave }) {
  const submit = (event) => {
    event.preventDefault();
    onSave({ reason: draft.text, ...(draft.node && { node: draft.node }) });
  };
  return html`<form class="stack" onSubmit=${submit} aria-label="Reject or request changes">
    <label class="field">
      Requested change
      <textarea
        rows="3"
        required
        value=${draft.text}
        onInput=${(event) => setDraft({ ...draft, text: event.currentTarget.value })}
      ></textarea>
    </label>
    <label class="field">
      Repeat step
      <select onChange=${(event) => setDraft({ ...draft, node: event.currentTarget.value })}>
        <option value="">none (only reject)</option>
        ${nodes.map(
          (node) =>
            html`<option key=${node} value=${node} selected=${node === draft.node}>
              ${stepName(node)}
            </option>`,
        )}
      </select>
    </label>
    ${
      draft.node &&
      !readsReasons(draft.node, model) &&
      html`<p class="muted">
        ${stepName(draft.node)} follows fixed rules and ignores the reason. To change the experiments, choose Draft
        Implementation Plan.
      </p>`
    }
    <div>
      <button class="danger" disabled=${busy || !draft.text.trim()}>
        ${draft.node ? "Repeat step" : "Reject plan"}
      </button>
    </div>
  </form>`;
}

function Validation({ validation }) {
  if (!validation)
    return html`<section class="card">
      <h2>Validation</h2>
      <p class="muted">Not validated yet.</p>
    </section>`;
  return html`<section class="card stack" aria-label="Validation">
    <h2>Validation</h2>
    <p class="status status-${validation.passed ? "finished" : "failed"}">
      <${Icon} name=${validation.passed ? "circle-check" : "circle-x"} />
      ${validation.passed ? "All checks passed" : counted(validation.findings.length, "finding")}${" "}
      <code title=${validation.digest}>${validation.digest.slice(0, 8)}</code>
    </p>
    ${
      validation.findings.length > 0 &&
      html`<ul class="faults">
        ${validation.findings.map(
          ({ code, place, message, hint }, at) =>
            html`<li key=${at}>
              <code>${place || code}</code>
              <span>
                ${message} <span class="muted">${hint}</span>
              </span>
            </li>`,
        )}
      </ul>`
    }
  </section>`;
}

// The rehearsal's predictions are intervals.
function Rehearsal({ rehearsal }) {
  if (!rehearsal) return null;
  const kind = { passed: "finished", failed: "failed" }[rehearsal.outcome] ?? "stopped";
  const prediction = rehearsal.prediction;
  const between = (pair) => pair && `${duration(pair[0])} to ${duration(pair[1])}`;
  const facts = prediction
    ? [
        ["Runs", `${prediction.runs} (${prediction.at_a_time} in parallel)`],
        ["Time per run", between(prediction.run_seconds)],
        ["Total time", between(prediction.total_seconds)],
        ["Memory per run", prediction.memory_mb && bytes(prediction.memory_mb * 1e6)],
        ["Based on", prediction.basis],
      ].filter(([, value]) => value)
    : [];
  return html`<section class="card stack" aria-label="Rehearsal">
    <h2>Rehearsal</h2>
    <p class="status status-${kind}">${rehearsal.outcome.replaceAll("_", " ")}</p>
    ${rehearsal.reason && html`<p class="muted">${rehearsal.reason}</p>`}
    ${
      facts.length > 0 &&
      html`<table class="pairs">
        <tbody>
          ${facts.map(
            ([name, value]) =>
              html`<tr key=${name}>
                <th scope="row">${name}</th>
                <td class="num">${value}</td>
              </tr>`,
          )}
        </tbody>
      </table>`
    }
    ${
      rehearsal.notes?.length > 0 &&
      html`<ul class="muted notes-list">
        ${rehearsal.notes.map((note) => html`<li key=${note}>${note}</li>`)}
      </ul>`
    }
  </section>`;
}

// The sweeps and unfinished runs of a plan.

const SWEEPS = 200; // newest sweeps to search
const OPEN = "ready,queued,launching,waiting,running";

function PlanWork({ plan }) {
  const sweeps = useFetched("sweeps", { limit: SWEEPS }, { refreshOn: eventTypes("sweep.", "run.status") });
  const runs = useFetched(
    "runs",
    { plan_id: plan.id, status: OPEN, limit: SWEEPS },
    { refreshOn: eventTypes("run.status", "run.created") },
  );
  const own = (sweeps.data ?? []).filter((sweep) => sweep.plan_id === plan.id).reverse();
  const steps = (runs.data ?? []).filter((run) => !run.sweep_id);
  if (!own.length && !steps.length) return null;
  return html`<section class="panel plan-work" aria-label="Runs of this plan">
    <h2>Runs</h2>
    ${
      own.length > 0 &&
      html`<ul class="lines">
        ${own.map((sweep) => html`<${SweepLine} key=${sweep.id} sweep=${sweep} />`)}
      </ul>`
    }
    ${steps.length > 0 && html`<${RunLines} runs=${steps} reasons />`}
  </section>`;
}
