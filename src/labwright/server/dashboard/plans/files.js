// The files of a plan's workspace. A reviewer may edit some of them.

import { bytes } from "../format.js";
import { html, useState } from "../view.js";
import { put } from "../data/api.js";
import { useFetched } from "../data/fetched.js";
import { mayWrite } from "../data/session.js";
import { Code, languageOf } from "../ui/code.js";
import { useDraft } from "../ui/drafts.js";
import { Icon } from "../ui/icon.js";
import { Markdown } from "../ui/markdown.js";
import { Problem } from "../ui/message.js";
import { useVerb } from "../ui/verb.js";
import { Diff } from "./versions.js";

export function PlanFiles({ plan, refresh }) {
  const path = `plans/${encodeURIComponent(plan.id)}/workspace`;
  const {
    data,
    problem,
    refresh: reload,
  } = useFetched(path, {}, { refreshOn: (event) => event.data.plan_id === plan.id });
  const [open, setOpen] = useState("");
  if (problem && !data) return html`<${Problem} error=${problem} retry=${reload} />`;
  if (!data) return html`<div class="loading" aria-busy="true"></div>`;
  const current =
    data.files.find((file) => file.path === open) ??
    data.files.find((file) => file.path.endsWith("workflow.py")) ??
    data.files[0];
  if (!current) return html`<p class="muted">No files yet.</p>`;
  return html`<section class="files" aria-label="Files">
    <nav class="file-list" aria-label="Workspace files">
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
      onSaved=${() => (reload(), refresh())}
    />
  </section>`;
}

export const filePath = (plan, path) =>
  `plans/${encodeURIComponent(plan.id)}/workspace/files/${path.split("/").map(encodeURIComponent).join("/")}`;

const savingOver = (path) => ({
  title: "Overwrite the changed file?",
  text: `${path} changed while you were editing. Those changes will be lost.`,
  verb: "Save file",
});

function File({ plan, path, onSaved }) {
  const { data, problem, refresh } = useFetched(filePath(plan, path));
  const [draft, setDraft, dropDraft] = useDraft(`file ${plan.id} ${path}`);
  const edit = () => setDraft({ text: data.content, before: data.content });
  const isOutdated = draft && draft.before !== data?.content;
  const [busy, run] = useVerb({ refresh: () => (refresh(), onSaved()) });
  const save = () =>
    run(() => put(filePath(plan, path), { content: draft.text, sha256: data.sha256 }).then(() => setDraft(null)), {
      confirm: isOutdated ? savingOver(path) : undefined,
      done: "Saved. Validate the plan again.",
    });
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
        html`<button class="primary" disabled=${busy || draft.text === data.content} onClick=${save}>
          Save file
        </button>
        <button onClick=${dropDraft}>Cancel</button>`
      }
    </div>
    ${
      isOutdated &&
      html`<p class="hint-line">
        This file changed while you were editing. The diff below compares your text with the current file.
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
        <summary class="muted">Preview</summary>
        <div class="card document">
          <${Markdown} text=${data.content} />
        </div>
      </details>`
    }
  </div>`;
}
