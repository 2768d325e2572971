// The files of a plan's workspace: to read, and to mend where the review may.

import { put } from "../data/api.js";
import { useDraft } from "../ui/drafts.js";
import { useFetched } from "../data/fetched.js";
import { mayWrite } from "../data/session.js";
import { bytes } from "../format.js";
import { Diff } from "./versions.js";
import { html, useState } from "../view.js";
import { Code, languageOf } from "../ui/code.js";
import { ask } from "../ui/dialog.js";
import { Icon } from "../ui/icon.js";
import { Markdown } from "../ui/markdown.js";
import { Problem } from "../ui/message.js";
import { say, sayError } from "../ui/toast.js";

export function PlanFiles({ plan, refresh }) {
  const path = `plans/${encodeURIComponent(plan.id)}/workspace`;
  const { data, problem, refresh: again } = useFetched(path, {}, { wakes: (event) => event.data.plan_id === plan.id });
  const [open, setOpen] = useState("");
  if (problem && !data) return html`<${Problem} error=${problem} retry=${again} />`;
  if (!data) return html`<div class="loading" aria-busy="true"></div>`;
  const current =
    data.files.find((file) => file.path === open) ??
    data.files.find((file) => file.path.endsWith("workflow.py")) ??
    data.files[0];
  if (!current) return html`<p class="muted">Nothing was made yet.</p>`;
  return html`<section class="files" aria-label="Files">
    <nav class="file-list" aria-label="Files of the workspace">
      ${data.files.map(
        (file) =>
          html`<button
            key=${file.path}
            class="menu-item"
            aria-pressed=${String(file === current)}
            onClick=${() => setOpen(file.path)}
          >
            <${Icon} name=${languageOf(file.path) === "python" ? "file-code" : "file-text"} size="14" />
            <span>${file.path}</span>
            <span class="muted small num">${bytes(file.size)}</span>
          </button>`,
      )}
    </nav>
    <${File}
      key="${current.path} ${current.sha256}"
      plan=${plan}
      path=${current.path}
      onSaved=${() => (again(), refresh())}
    />
  </section>`;
}

export const filePath = (plan, path) =>
  `plans/${encodeURIComponent(plan.id)}/workspace/files/${path.split("/").map(encodeURIComponent).join("/")}`;

const savingOver = (path) => ({
  title: "Save over the file as it is now?",
  text: `${path} changed while you wrote; what changed there is lost.`,
  verb: "Save file",
});

function File({ plan, path, onSaved }) {
  const { data, problem, refresh } = useFetched(filePath(plan, path));
  const [draft, setDraft, dropDraft] = useDraft(`file ${plan.id} ${path}`);
  const edit = () => setDraft({ text: data.content, before: data.content });
  const isBehind = draft && draft.before !== data?.content;
  const save = async () => {
    if (isBehind && !(await ask(savingOver(path)))) return;
    try {
      await put(filePath(plan, path), { content: draft.text, sha256: data.sha256 });
      say("Saved. Validate the plan again.");
      setDraft(null);
      refresh();
      onSaved();
    } catch (error) {
      sayError(error);
    }
  };
  if (problem && !data) return html`<${Problem} error=${problem} retry=${refresh} />`;
  if (!data) return html`<div class="loading" aria-busy="true"></div>`;
  const canEdit =
    data.editable &&
    mayWrite() &&
    plan.status !== "executing" &&
    plan.status !== "completed" &&
    plan.status !== "archived" &&
    !plan.compiling_by;
  return html`<div class="stack file">
    <div class="section-head">
      <h2>
        <code>${path}</code>
      </h2>
      ${
        canEdit &&
        !draft &&
        html`<button onClick=${edit}>
          <${Icon} name="pencil" size="14" />
          Edit file
        </button>`
      }
      ${
        draft &&
        html`<button class="primary" disabled=${draft.text === data.content} onClick=${save}>
          Save file
        </button>
        <button onClick=${dropDraft}>Cancel</button>`
      }
    </div>
    ${
      isBehind &&
      html`<p class="hint-line">
        This file changed while you wrote. Below is what yours would change in it as it is now.
      </p>`
    }
    ${
      !draft
        ? html`<${Code} text=${data.content} language=${languageOf(path)} label=${path} />`
        : html`<textarea
          class="file-field"
          aria-label=${path}
          spellcheck=${false}
          value=${draft.text}
          onInput=${(event) => setDraft({ ...draft, text: event.currentTarget.value })}
        ></textarea>
        ${draft.text !== data.content && html`<${Diff} before=${data.content} after=${draft.text} />`}`
    }
    ${
      !draft &&
      languageOf(path) === "markdown" &&
      html`<details>
        <summary class="muted">As a page</summary>
        <div class="card document">
          <${Markdown} text=${data.content} />
        </div>
      </details>`
    }
  </div>`;
}
