// What there is to review: how far it is, what it asks, what was checked, what it will cost; and the decision, bound to
// one digest.

import { post } from "../data/api.js";
import { useDraft, useFormDraft } from "../ui/drafts.js";
import { useFetched, wakesOn } from "../data/fetched.js";
import { isPerson, mayWrite } from "../data/session.js";
import { bytes, counted, duration } from "../format.js";
import { PlanChanges } from "./changes.js";
import { html, useState } from "../view.js";
import { Copy } from "../ui/copy.js";
import { Icon } from "../ui/icon.js";
import { Problem } from "../ui/message.js";
import { say, sayError } from "../ui/toast.js";
import { RunLines } from "../work/run_link.js";
import { SweepLine } from "../work/sweep_link.js";
import { Who } from "../work/who.js";

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
const NO_WORDS = { text: "", before: "", node: "" };
const UNDECIDABLE = new Set(["new", "compiling", "needs_input"]); // there is nothing whole to decide on
const ONLY_LOOK = new Set(["HumanReview", "FinalHandoffCheck"]); // what they would do again is no other

export function PlanReview({ plan, workspace, refresh }) {
  const { planning } = plan;
  const path = `plans/${encodeURIComponent(plan.id)}`;
  return html`<div class="review">
    <div class="stack">
      ${plan.compiling_by && html`<${BeingPlanned} progress=${planning.progress} />`}
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
      ${!workspace.data && !workspace.problem && !plan.compiling_by && html`<div class="loading" aria-busy="true"></div>`}
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

// A check that was carried out to its end and found something is no green one.
const outcome = ({ node, status }, validation) =>
  node === "ValidateWorkspace" && status === "finished" && validation?.passed === false
    ? { status: "failed", message: counted(validation.findings.length, "finding") }
    : {};

function BeingPlanned({ progress }) {
  const now = progress.find(({ status }) => status === "started");
  const isDecided = progress.some(({ node, status }) => node === "HumanReview" && status === "finished");
  const next = isDecided
    ? "It is approved, and can be executed once this has passed."
    : "What there is to decide stands here as soon as it is known; nothing runs before you approve it.";
  return html`<section class="card stack" aria-label="Being planned">
    <h2>${isDecided ? "Being checked" : "Being planned"}</h2>
    <p class="muted">
      ${now ? `${words(now.node)} is under way.` : "It is about to begin."} ${next}
    </p>
  </section>`;
}

const words = (name) => name.replaceAll(/([a-z])([A-Z])/g, "$1 $2").replaceAll("_", " ");

const Steps = ({ title, steps }) =>
  html`<section class="card" aria-label=${title}>
    <h2>${title}</h2>
    <ol class="steps">
      ${steps.map(
        ({ name, status, seconds, message }) =>
          html`<li key=${name} class="status status-${KINDS[status] ?? "stopped"}">
            <${Icon} name=${ICONS[status] ?? "circle-dashed"} />
            <span class="step-name">
              ${words(name)}
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
  const answers = questions.map(({ text }) => fields[text] ?? "").filter((answer) => answer.trim()); // by question: others may be asked meanwhile
  const submit = async (event) => {
    event.preventDefault();
    try {
      await post(`${path}/compile`, { answers });
      clear();
      say("Planning goes on.");
      refresh();
    } catch (error) {
      sayError(error);
    }
  };
  return html`<form class="card stack" aria-label="Questions" onSubmit=${submit}>
    <h2>Planning needs to know</h2>
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
        <button class="primary" disabled=${!answers.length}>
          Answer
        </button>
      </div>`
    }
  </form>`;
}

function Decision({ plan, path, workspace, refresh }) {
  const [busy, setBusy] = useState(false);
  const [rejection, setRejection, dropRejection] = useDraft(`rejection ${plan.id}`);
  const { planning } = plan;
  const { approval } = planning;
  const review = async (body, done) => {
    setBusy(true);
    try {
      await post(`${path}/review`, body);
      say(done);
      setRejection(null);
    } catch (error) {
      sayError(error);
    }
    refresh();
    setBusy(false);
  };
  const isOpen = plan.status === "draft" && !plan.compiling_by;
  const canReject = isPerson() && (isOpen || (plan.status === "approved" && !plan.compiling_by));
  return html`<section class="card stack" aria-label="Decision">
    <h2>Decision</h2>
    <p>
      What is to be approved:${" "}
      <${Copy} text=${workspace.digest} shown=${workspace.digest.slice(0, 8)} label="Copy the whole digest" />${" "}
      <span class="muted">
        the plan, its IR, code and tests, the project's own code, the environment and the commands, byte for byte.
      </span>
    </p>
    ${
      approval &&
      html`<p class="status status-finished">
        <${Icon} name="check" />
        approved ${approval.automatic ? "automatically " : ""}by <${Who} actor=${approval.by} />
        ${approval.reason && ` (${approval.reason})`}:${" "}
        <code title=${approval.digest}>${approval.digest.slice(0, 8)}</code>
      </p>`
    }
    <${Changed} since="it was validated; validate it again first" what=${workspace.changed_since_validation} />
    <${Changed} since="the approval" what=${workspace.changed_since_approval} />
    ${!planning.validated && html`<${NotValidated} validation=${workspace.validation} />`}
    ${
      canReject &&
      html`<div class="verbs verbs-left">
        ${
          isOpen &&
          html`<button
            class="primary"
            disabled=${busy || workspace.changed_since_validation.length > 0}
            onClick=${() => review({ approved: true, digest: workspace.digest }, "Approved.")}
          >
            <${Icon} name="check" size="14" />
            Approve this plan
          </button>`
        }
        <button
          disabled=${busy}
          aria-expanded=${String(Boolean(rejection))}
          onClick=${() => (rejection ? dropRejection() : setRejection(NO_WORDS))}
        >
          <${Icon} name="pencil" size="14" />
          Reject or ask for a change
        </button>
      </div>`
    }
    ${
      canReject &&
      rejection &&
      html`<${Rejection}
        draft=${rejection}
        setDraft=${setRejection}
        nodes=${planning.progress.map(({ node }) => node).filter((node) => !ONLY_LOOK.has(node))}
        model=${planning.model}
        busy=${busy}
        onSave=${(body) => review({ approved: false, ...body }, body.node ? "It is being done again." : "Rejected.")}
      />`
    }
  </section>`;
}

const NotValidated = ({ validation }) =>
  validation?.passed === false
    ? html`<p class="hint-line hint-bad">
      <${Icon} name="circle-x" size="14" /> Validation has ${counted(validation.findings.length, "finding")}, below.${" "}
      <span class="muted">An approval is recorded, and does not make it runnable.</span>
    </p>`
    : html`<p class="muted">It is not validated: an approval is recorded, and does not make it runnable.</p>`;

const Changed = ({ since, what }) =>
  what.length > 0 &&
  html`<div class="hint-line">
    Changed since ${since}:${" "}
    <ul>
      ${what.map((one) => html`<li key=${one}>${one}</li>`)}
    </ul>
  </div>`;

// What only follows from the draft is made again as it was; so is code, where rules write it by template.
const readsReasons = (node, model) =>
  node.startsWith("Draft") || (/^(GenerateTask|Validate)/.test(node) && !model.startsWith("offline rules"));

function Rejection({ draft, setDraft, nodes, model, busy, onSave }) {
  const submit = (event) => {
    event.preventDefault();
    onSave({ reason: draft.text, ...(draft.node && { node: draft.node }) });
  };
  return html`<form class="stack" onSubmit=${submit} aria-label="Reject or ask for a change">
    <label class="field">
      What should be different?
      <textarea
        rows="3"
        required
        value=${draft.text}
        onInput=${(event) => setDraft({ ...draft, text: event.currentTarget.value })}
      ></textarea>
    </label>
    <label class="field">
      Do again
      <select onChange=${(event) => setDraft({ ...draft, node: event.currentTarget.value })}>
        <option value="">nothing: only reject it</option>
        ${nodes.map(
          (node) =>
            html`<option key=${node} value=${node} selected=${node === draft.node}>
              ${words(node)}
            </option>`,
        )}
      </select>
    </label>
    ${
      draft.node &&
      !readsReasons(draft.node, model) &&
      html`<p class="muted">
        ${words(draft.node)} works by rules: it is done again, and reads no reason. To try other things, choose Draft
        Implementation Plan.
      </p>`
    }
    <div>
      <button class="danger" disabled=${busy || !draft.text.trim()}>
        ${draft.node ? "Have it done again" : "Reject plan"}
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
      ${validation.passed ? "Every check passed" : counted(validation.findings.length, "finding")}${" "}
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

// What it predicts comes as intervals: nobody knows better before it has run.
function Rehearsal({ rehearsal }) {
  if (!rehearsal) return null;
  const kind = { passed: "finished", failed: "failed" }[rehearsal.outcome] ?? "stopped";
  const said = rehearsal.prediction;
  const between = (pair) => pair && `${duration(pair[0])} to ${duration(pair[1])}`;
  const facts = said
    ? [
        ["runs", `${said.runs}, ${said.at_a_time} at a time`],
        ["one run", between(said.run_seconds)],
        ["all of it", between(said.total_seconds)],
        ["memory of a run", said.memory_mb && bytes(said.memory_mb * 1e6)],
        ["judged by", said.basis],
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

// What a plan is at while it is rehearsed or executed: its sweeps and how far they are, and steps that have not ended, with the reason if one waits.

const SWEEPS = 200; // among the newest of the project
const OPEN = "ready,queued,launching,waiting,running";

function PlanWork({ plan }) {
  const sweeps = useFetched("sweeps", { limit: SWEEPS }, { wakes: wakesOn("sweep.", "run.status") });
  const runs = useFetched(
    "runs",
    { plan_id: plan.id, status: OPEN, limit: SWEEPS },
    { wakes: wakesOn("run.status", "run.created") },
  );
  const own = (sweeps.data ?? []).filter((sweep) => sweep.plan_id === plan.id).reverse();
  const steps = (runs.data ?? []).filter((run) => !run.sweep_id);
  if (!own.length && !steps.length) return null;
  return html`<section class="panel plan-work" aria-label="Its runs">
    <h2>Its runs</h2>
    ${
      own.length > 0 &&
      html`<ul class="lines">
        ${own.map((sweep) => html`<${SweepLine} key=${sweep.id} sweep=${sweep} />`)}
      </ul>`
    }
    ${steps.length > 0 && html`<${RunLines} runs=${steps} reasons />`}
  </section>`;
}
