// A skill's text to change, with what a model would get of it beside it.

import { html, useState } from "../ui.js";
import { Shown, useRendered } from "./skill_preview.js";
import { sayError } from "./toast.js";

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
    <div class="editor-text"><textarea aria-label="SKILL.md" spellcheck=${false} value=${draft} onInput=${(event) => setDraft(event.currentTarget.value)}></textarea></div>
    <div class="editor-side"><div class="verbs verbs-left"><button class="primary" disabled=${busy || draft === before} onClick=${save}>Save skill</button><button onClick=${onCancel}>Cancel</button></div>
      <h2>As a model would get it</h2><div class="skill-preview" tabindex="0" role="region" aria-label="Preview"><${Shown} text=${rendered} problem=${problem} /></div></div>
  </section>`;
}
