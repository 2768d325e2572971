// The actions of a plan.

import { html } from "../view.js";
import { post, remove } from "../data/api.js";
import { go } from "../data/router.js";
import { isPerson, mayWrite } from "../data/session.js";
import { Icon } from "../ui/icon.js";
import { Menu } from "../ui/menu.js";
import { useVerb } from "../ui/verb.js";

export function PlanVerbs({ plan, refresh }) {
  const [busy, run] = useVerb({ refresh });
  const path = `plans/${encodeURIComponent(plan.id)}`;
  const hasRun = plan.status === "failed" || plan.status === "completed";
  const act = (verb, done, confirm, body) => run(() => post(`${path}/${verb}`, body), { done, confirm });
  const archive = () => {
    const text = "The plan is permanently hidden from the default lists. Its document, files and results are kept.";
    act("archive", "Plan archived.", { title: `Archive “${plan.title}”?`, text, verb: "Archive plan" });
  };
  const drop = () => {
    const text = "Its versions and files are deleted. Its runs are kept. This cannot be undone.";
    const confirm = { title: `Delete “${plan.title}”?`, text, verb: "Delete plan" };
    run(() => remove(path).then(() => go("#/plans")), { confirm, done: "Plan deleted." });
  };
  const execute = () => {
    const title = `Execute “${plan.title}”${hasRun ? " again" : ""}?`;
    const text = hasRun
      ? "Failed and unfinished runs are repeated exactly as approved. Finished runs are kept."
      : "The steps of the plan start as runs, exactly as approved.";
    act("execute", "Plan started.", { title, text, verb: "Execute plan", kind: "primary" });
  };
  const stop = () => {
    const text = "All runs of the plan will be stopped.";
    act("stop", "Stopping the plan.", { title: "Stop the execution?", text, verb: "Stop plan" });
  };
  if (!mayWrite()) return null;
  const made = plan.planning;
  const isDraft = plan.status === "draft" || plan.status === "failed";
  const compilable = made !== undefined && isDraft && !plan.compiling_by;
  return html`<div class="verbs" role="group" aria-label="Plan actions">
    ${
      made?.ready_for_run &&
      (plan.status === "approved" || plan.status === "failed") &&
      html`<button class="primary" disabled=${busy} onClick=${execute}>
        <${Icon} name="play" size="14" />
        Execute ${hasRun ? "again" : "plan"}
      </button>`
    }
    ${
      plan.status === "executing" &&
      html`<button class="danger" disabled=${busy} onClick=${stop}>
        <${Icon} name="square" size="14" />
        Stop plan
      </button>`
    }
    ${
      compilable &&
      html`<button disabled=${busy} onClick=${() => act("compile", "Compiling the plan.", undefined, {})}>
        <${Icon} name="workflow" size="14" />
        ${made ? "Compile again" : "Compile"}
      </button>`
    }
    ${
      compilable &&
      made &&
      html`<button disabled=${busy} onClick=${() => act("validate", "Validating the plan.", undefined, {})}>
        <${Icon} name="circle-check" size="14" />
        Validate
      </button>`
    }
    <${Menu} label="More" icon="ellipsis">
      ${(close) =>
        html`${
          plan.status === "completed" &&
          html`<button class="menu-item" onClick=${() => (close(), execute())}>
            <${Icon} name="play" size="14" />
            Retry failed runs…
          </button>`
        }
        ${
          plan.status !== "archived" &&
          plan.status !== "executing" &&
          html`<button class="menu-item" onClick=${() => (close(), archive())}>
            <${Icon} name="archive" size="14" />
            Archive…
          </button>`
        }
        ${
          isPerson() &&
          plan.status !== "executing" &&
          html`<button class="menu-item danger" onClick=${() => (close(), drop())}>
            <${Icon} name="trash" size="14" />
            Delete plan…
          </button>`
        }`}
    </${Menu}>
  </div>`;
}
