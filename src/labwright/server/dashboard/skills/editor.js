// A skill as a model would get it now: the server fills in its variables, so this is what there is and nothing made up.

import { post } from "../data/api.js";
import { html, useEffect, useRef, useState } from "../view.js";
import { Icon } from "../ui/icon.js";
import { Markdown } from "../ui/markdown.js";
import { sayError } from "../ui/toast.js";

const PAUSE_MS = 300;

// A problem is what is wrong with the text; saving would be refused with the same words.
function useRendered(id, text, variables) {
  const [found, setFound] = useState({ text: null, problem: null });
  const last = useRef(0);
  const wanted = JSON.stringify(variables);
  useEffect(() => {
    const number = ++last.current;
    const timer = setTimeout(async () => {
      const body = { text, variables, preview: true, shell: "local" }; // on this machine a text carries no token
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
  return html`<section class="stack" aria-label="As a model gets it">
    ${
      variables.length > 0 &&
      html`<details class="evidence">
        <summary>Variables: ${variables.join(", ")}</summary>
        <p class="muted">Left empty, they are filled in with the project as it is now.</p>
        ${variables.map(
          (name) =>
            html`<label class="field" key=${name}>
              ${name}
              <input
                type="text"
                placeholder="as it is now"
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

// The last that could be filled in stays, so that nothing jumps while one types; and is said to be the last.
function Shown({ text, problem }) {
  return html`${
    problem &&
    html`<p class="hint-line hint-bad" role="alert">
      <${Icon} name="octagon-alert" size="14" /> ${problem.message} <span class="muted">${problem.hint}</span>
    </p>`
  }
  ${text === null && !problem && html`<div class="loading" aria-busy="true"></div>`}
  ${problem && text !== null && html`<p class="muted preview-old">Below: as it was before that.</p>`}
  ${
    text !== null &&
    html`<article class="card document">
      <${Markdown} text=${text} />
    </article>`
  }`;
}

// A skill's text to change, with what a model would get of it beside it.

export function SkillEditor({ id, draft, setDraft, before, onSave, onCancel }) {
  const [busy, setBusy] = useState(false);
  const { text: rendered, problem } = useRendered(id, draft, {});
  const save = async () => {
    setBusy(true);
    try {
      await onSave(draft);
    } catch (error) {
      sayError(error);
    }
    setBusy(false);
  };
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
        <button class="primary" disabled=${busy || draft === before} onClick=${save}>
          Save skill
        </button>
        <button onClick=${onCancel}>Cancel</button>
      </div>
      <h2>As a model would get it</h2>
      <div class="skill-preview" tabindex="0" role="region" aria-label="Preview">
        <${Shown} text=${rendered} problem=${problem} />
      </div>
    </div>
  </section>`;
}
