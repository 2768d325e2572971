// What can be done with a plan now.

import { post, remove } from "../data/api.js";
import { go } from "../data/router.js";
import { isPerson, mayWrite } from "../data/session.js";
import { html, useState } from "../view.js";
import { ask } from "../ui/dialog.js";
import { Icon } from "../ui/icon.js";
import { Menu } from "../ui/menu.js";
import { say, sayError } from "../ui/toast.js";

export function PlanVerbs({ plan, refresh }) {
  const [busy, setBusy] = useState(false);
  const path = `plans/${encodeURIComponent(plan.id)}`;
  const hasRun = plan.status === "failed" || plan.status === "completed";
  const doing = async (work, words) => {
    setBusy(true);
    try {
      await work();
      say(words);
      refresh();
    } catch (error) {
      sayError(error);
    }
    setBusy(false);
  };
  const archive = async () => {
    const text = "It leaves the usual lists for good. Its text, files and results stay.";
    if (await ask({ title: `Archive “${plan.title}”?`, text, verb: "Archive plan" }))
      doing(() => post(`${path}/archive`), "Archived.");
  };
  const drop = async () => {
    const text = "Its versions and files go with it. Runs that it started stay. This cannot be undone.";
    if (await ask({ title: `Delete “${plan.title}”?`, text, verb: "Delete plan" }))
      doing(async () => (await remove(path), go("#/plans")), "Deleted.");
  };
  const execute = async () => {
    const text = hasRun
      ? "What failed or did not finish is run again, exactly as it was approved. What finished stays."
      : "Its steps start as runs on this machine, exactly as they were approved.";
    if (
      await ask({
        title: `Execute “${plan.title}”${hasRun ? " again" : ""}?`,
        text,
        verb: "Execute plan",
        kind: "primary",
      })
    )
      doing(() => post(`${path}/execute`), "It has begun.");
  };
  const stop = async () => {
    if (
      await ask({ title: "Stop the execution?", text: "Every run that it started will be ended.", verb: "Stop plan" })
    )
      doing(() => post(`${path}/stop`), "Stopping.");
  };
  if (!mayWrite()) return null;
  const made = plan.planning;
  const isDraft = plan.status === "draft" || plan.status === "failed";
  const compilable = made !== undefined && isDraft && !plan.compiling_by;
  return html`<div class="verbs" role="group" aria-label="What to do with this plan">
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
      html`<button disabled=${busy} onClick=${() => doing(() => post(`${path}/compile`, {}), "Being compiled.")}>
        <${Icon} name="workflow" size="14" />
        ${made ? "Compile again" : "Compile"}
      </button>`
    }
    ${
      compilable &&
      made &&
      html`<button disabled=${busy} onClick=${() => doing(() => post(`${path}/validate`, {}), "Being validated.")}>
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
            Run failed ones again…
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
