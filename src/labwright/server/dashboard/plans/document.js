// The plan's text, as people read it; and to edit, with what is wrong with its form while one types.

import { isAborted, patch, post } from "../data/api.js";
import { useDraft } from "../ui/drafts.js";
import { mayWrite } from "../data/session.js";
import { counted } from "../format.js";
import { html, useEffect, useRef, useState } from "../view.js";
import { ask } from "../ui/dialog.js";
import { Icon } from "../ui/icon.js";
import { Markdown } from "../ui/markdown.js";
import { Message } from "../ui/message.js";
import { say, sayError } from "../ui/toast.js";

const PAUSE_MS = 250;
const FIXED = new Set(["executing", "completed", "archived"]);

export function PlanDocument({ plan, refresh }) {
  const [draft, setDraft, dropDraft] = useDraft(`document ${plan.id}`);
  const canEdit = mayWrite() && !FIXED.has(plan.status) && !plan.compiling_by;
  const path = `plans/${encodeURIComponent(plan.id)}`;
  const edit = () => setDraft({ text: plan.raw_markdown, before: plan.raw_markdown, version: plan.version });
  const isBehind = draft && draft.version !== plan.version;
  const save = async () => {
    if (isBehind && !(await ask(savingOver(plan)))) return;
    try {
      await patch(path, { raw_markdown: draft.text, version: plan.version });
      setDraft(null);
      say("Saved as a new version.");
      refresh();
    } catch (error) {
      sayError(error);
    }
  };
  if (draft) {
    return html`${
      isBehind &&
      html`<p class="hint-line">
        Version ${plan.version} was saved while you wrote. What changed there stands under Versions; it is not in
        your text.
      </p>`
    }
    <${Editor}
      draft=${draft.text}
      setText=${(text) => setDraft({ ...draft, text })}
      before=${plan.raw_markdown}
      onSave=${save}
      onCancel=${dropDraft}
    />`;
  }
  return html`<section class="stack" aria-label="Document">
    ${
      canEdit &&
      html`<div class="verbs verbs-left">
        <button onClick=${edit}>
          <${Icon} name="pencil" size="14" />
          Edit document
        </button>
      </div>`
    }
    ${!plan.format.valid && plan.raw_markdown && html`<${Faults} errors=${plan.format.errors} />`}
    ${
      plan.raw_markdown
        ? html`<article class="card document">
          <${Markdown} text=${plan.raw_markdown} />
        </article>`
        : html`<${Message} icon="file-text" title="No text yet">
          <p class="muted">${plan.goal}</p>
        </${Message}>`
    }
  </section>`;
}

const savingOver = ({ version }) => ({
  title: `Save over version ${version}?`,
  text: "What was changed there is not in your text. It stays among the versions.",
  verb: "Save version",
});

const Faults = ({ errors, onLine }) =>
  html`<ul class="faults" aria-label="What is wrong with the form">
    ${errors.map(
      ({ line, message, hint }, at) =>
        html`<li key=${at}>
          ${
            onLine
              ? html`<button class="link" onClick=${() => onLine(line)}>
                line ${line}
              </button>`
              : html`<span class="num">line ${line}</span>`
          }
          <span>
            ${coded(message)}
            ${hint && html`<span class="muted">${coded(hint)}</span>`}
          </span>
        </li>`,
    )}
  </ul>`;

// What stands between backticks is code.
const coded = (words) => words.split("\u0060").map((part, at) => (at % 2 ? html`<code>${part}</code>` : part));

function Editor({ draft, setText, before, onSave, onCancel }) {
  const field = useRef(null);
  const format = useFormat(draft);
  const toLine = (line) => {
    const lines = draft.split("\n");
    const from = lines.slice(0, line - 1).join("\n").length + (line > 1 ? 1 : 0);
    field.current.focus();
    field.current.setSelectionRange(from, from + (lines[line - 1] ?? "").length);
    field.current.scrollTop = (line - 4) * 19;
  };
  return html`<section class="editor" aria-label="Edit document">
    <div class="editor-text">
      <textarea
        ref=${field}
        aria-label="Document"
        spellcheck=${false}
        value=${draft}
        onInput=${(event) => setText(event.currentTarget.value)}
      ></textarea>
    </div>
    <div class="editor-side">
      <div class="verbs verbs-left">
        <button class="primary" disabled=${draft === before} onClick=${onSave}>
          Save version
        </button>
        <button onClick=${onCancel}>Cancel</button>
      </div>
      <div role="status" class="stack">
        ${
          format &&
          (format.valid
            ? html`<p class="status status-finished">
              <${Icon} name="circle-check" />
              The form is right.
            </p>`
            : html`<p class="muted">${counted(format.errors.length, "fault")} of form. It can be saved all the same.</p>
            <${Faults} errors=${format.errors} onLine=${toLine} />`)
        }
      </div>
      <details>
        <summary class="muted">Preview</summary>
        <div class="document">
          <${Markdown} text=${draft} />
        </div>
      </details>
    </div>
  </section>`;
}

function useFormat(draft) {
  const [format, setFormat] = useState(null);
  const last = useRef(null);
  useEffect(() => {
    const timer = setTimeout(async () => {
      last.current = draft;
      try {
        const found = await post("plans/check", { raw_markdown: draft });
        if (last.current === draft) setFormat(found);
      } catch (error) {
        if (!isAborted(error)) setFormat(null); // saving tells what is wrong
      }
    }, PAUSE_MS);
    return () => clearTimeout(timer);
  }, [draft]);
  return format;
}
