// A skill's editor and its preview. The server fills in the variables, so the preview shows real values.

import { html, useEffect, useRef, useState } from "../view.js";
import { post } from "../data/api.js";
import { Icon } from "../ui/icon.js";
import { Markdown } from "../ui/markdown.js";
import { useVerb } from "../ui/verb.js";

const PAUSE_MS = 300;

// Return the rendered text, or the error that saving would return.
function useRendered(id, text, variables) {
  const [found, setFound] = useState({ text: null, problem: null });
  const last = useRef(0);
  const wanted = JSON.stringify(variables);
  useEffect(() => {
    const number = ++last.current;
    const timer = setTimeout(async () => {
      const body = { text, variables, preview: true, shell: "local" }; // a local text contains no token
      const answer = await post(`prompt-skills/${encodeURIComponent(id)}/render`, body).then(
        ({ text: rendered }) => ({ text: rendered, problem: null }),
        (problem) => ({ text: null, problem }),
      );
      if (number === last.current) setFound((before) => ({ ...answer, text: answer.text ?? before.text }));
    }, PAUSE_MS);
    return () => clearTimeout(timer);
  }, [id, text, wanted]);
  return found;
}

export function Rendered({ id, text, variables = [] }) {
  const [given, setGiven] = useState({});
  const filled = Object.fromEntries(Object.entries(given).filter(([, value]) => value));
  const { text: rendered, problem } = useRendered(id, text, filled);
  return html`<section class="stack" aria-label="Preview">
    ${
      variables.length > 0 &&
      html`<details class="evidence">
        <summary>Variables: ${variables.join(", ")}</summary>
        <p class="muted">Empty variables are filled with the current project state.</p>
        ${variables.map(
          (name) =>
            html`<label class="field" key=${name}>
              ${name}
              <input
                type="text"
                placeholder="current value"
                value=${given[name] ?? ""}
                onInput=${(event) => setGiven({ ...given, [name]: event.currentTarget.value })}
              />
            </label>`,
        )}
      </details>`
    }
    <${Shown} text=${rendered} problem=${problem} />
  </section>`;
}

// Keep the last valid preview, so that the page does not jump while the user types.
function Shown({ text, problem }) {
  return html`${
    problem &&
    html`<p class="hint-line hint-bad" role="alert">
      <${Icon} name="octagon-alert" size="14" /> ${problem.message} <span class="muted">${problem.hint}</span>
    </p>`
  }
  ${text === null && !problem && html`<div class="loading" aria-busy="true"></div>`}
  ${problem && text !== null && html`<p class="muted preview-old">Preview of the last valid text:</p>`}
  ${
    text !== null &&
    html`<article class="card document">
      <${Markdown} text=${text} />
    </article>`
  }`;
}

// The text field, with the preview beside it.
export function SkillEditor({ id, draft, setDraft, before, onSave, onCancel }) {
  const [busy, run] = useVerb();
  const { text: rendered, problem } = useRendered(id, draft, {});
  return html`<section class="editor" aria-label="Edit skill">
    <div class="editor-text">
      <textarea
        aria-label="SKILL.md"
        spellcheck=${false}
        value=${draft}
        onInput=${(event) => setDraft(event.currentTarget.value)}
      ></textarea>
    </div>
    <div class="editor-side">
      <div class="verbs verbs-left">
        <button class="primary" disabled=${busy || draft === before} onClick=${() => run(() => onSave(draft))}>
          Save skill
        </button>
        <button onClick=${onCancel}>Cancel</button>
      </div>
      <h2>Preview</h2>
      <div class="skill-preview" tabindex="0" role="region" aria-label="Preview">
        <${Shown} text=${rendered} problem=${problem} />
      </div>
    </div>
  </section>`;
}
