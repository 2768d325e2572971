// The plan's document, and an editor that checks its format.

import { counted } from "../format.js";
import { html, useEffect, useRef, useState } from "../view.js";
import { isAborted, patch, post } from "../data/api.js";
import { mayWrite } from "../data/session.js";
import { useDraft } from "../ui/drafts.js";
import { Icon } from "../ui/icon.js";
import { Markdown } from "../ui/markdown.js";
import { Message } from "../ui/message.js";
import { useVerb } from "../ui/verb.js";

const PAUSE_MS = 250;
const READ_ONLY = new Set(["executing", "completed", "archived"]);

export function PlanDocument({ plan, refresh }) {
  const [draft, setDraft, dropDraft] = useDraft(`document ${plan.id}`);
  const canEdit = mayWrite() && !READ_ONLY.has(plan.status) && !plan.compiling_by;
  const path = `plans/${encodeURIComponent(plan.id)}`;
  const edit = () => setDraft({ text: plan.raw_markdown, before: plan.raw_markdown, version: plan.version });
  const isOutdated = draft && draft.version !== plan.version;
  const [busy, run] = useVerb({ refresh });
  const save = () =>
    run(() => patch(path, { raw_markdown: draft.text, version: plan.version }).then(() => setDraft(null)), {
      confirm: isOutdated ? savingOver(plan) : undefined,
      done: "Saved as a new version.",
    });
  if (draft) {
    return html`${
      isOutdated &&
      html`<p class="hint-line">
        Version ${plan.version} was saved while you were editing. Your text does not contain its changes; see the
        Versions tab.
      </p>`
    }
    <${Editor}
      draft=${draft.text}
      setText=${(text) => setDraft({ ...draft, text })}
      before=${plan.raw_markdown}
      busy=${busy}
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
    ${!plan.format.valid && plan.raw_markdown && html`<${FormatErrors} errors=${plan.format.errors} />`}
    ${
      plan.raw_markdown
        ? html`<article class="card document">
          <${Markdown} text=${plan.raw_markdown} />
        </article>`
        : html`<${Message} icon="file-text" title="No document yet">
          <p class="muted">${plan.goal}</p>
        </${Message}>`
    }
  </section>`;
}

const savingOver = ({ version }) => ({
  title: `Save over version ${version}?`,
  text: "Your text does not contain its changes. The version stays in the history.",
  verb: "Save version",
});

const FormatErrors = ({ errors, onLine }) =>
  html`<ul class="faults" aria-label="Format errors">
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
            ${hint && html`${" "}<span class="muted">${coded(hint)}</span>`}
          </span>
        </li>`,
    )}
  </ul>`;

// Show text between backticks as code.
const coded = (text) => text.split("\u0060").map((part, at) => (at % 2 ? html`<code>${part}</code>` : part));

function Editor({ draft, setText, before, busy, onSave, onCancel }) {
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
        <button class="primary" disabled=${busy || draft === before} onClick=${onSave}>
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
              The format is valid.
            </p>`
            : html`<p class="muted">${counted(format.errors.length, "format error")}. You can still save it.</p>
            <${FormatErrors} errors=${format.errors} onLine=${toLine} />`)
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
        if (!isAborted(error)) setFormat(null); // saving shows the error
      }
    }, PAUSE_MS);
    return () => clearTimeout(timer);
  }, [draft]);
  return format;
}
