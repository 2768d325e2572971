// The page of one skill: preview, text and editor.

import { html } from "../view.js";
import { put, remove } from "../data/api.js";
import { useFetched } from "../data/fetched.js";
import { useKeys } from "../data/keyboard.js";
import { go, skillAddress } from "../data/router.js";
import { isPerson, mayWrite } from "../data/session.js";
import { useTitle } from "../data/window_title.js";
import { Code } from "../ui/code.js";
import { useDraft } from "../ui/drafts.js";
import { Icon } from "../ui/icon.js";
import { Problem } from "../ui/message.js";
import { Tabs } from "../ui/tabs.js";
import { showToast } from "../ui/toast.js";
import { useVerb } from "../ui/verb.js";
import { Rendered, SkillEditor } from "./editor.js";
import { Source } from "./skills_page.js";

export default function SkillPage({ id }) {
  const path = `prompt-skills/${encodeURIComponent(id)}`;
  const { data: skill, problem, refresh } = useFetched(path, {}, { refreshOn: (event) => event.data.skill_id === id });
  const [draft, setDraft, dropDraft] = useDraft(`skill ${id}`);
  const [busy, run] = useVerb();
  useKeys({ Escape: () => go("#/skills") });
  useTitle(skill?.title ?? "Skill");
  if (problem && !skill) return html`<${Problem} error=${problem} />`;
  if (!skill) return html`<div class="loading" aria-busy="true"></div>`;
  const save = async (text) => {
    await put(path, { text });
    showToast(
      skill.source === "built-in" ? "Saved. The project's version replaces the built-in skill." : "Skill saved.",
    );
    setDraft(null);
    refresh();
  };
  const restore = () =>
    run(() => put(path, { text: skill.text }).then(() => go(skillAddress(id))), { done: "Skill restored." });
  const drop = () => {
    const text = skill.overrides ? "The built-in skill is used again." : "Models no longer receive this skill.";
    const confirm = { title: `Delete “${skill.title}”?`, text, verb: "Delete skill" };
    const call = async () => {
      await remove(path);
      showToast("Skill deleted.", { action: { label: "Undo", run: restore } });
      if (skill.overrides) refresh();
      else go("#/skills");
    };
    run(call, { confirm });
  };
  const tabs = [
    mayWrite() && {
      name: "preview",
      label: "Preview",
      show: () => html`<${Rendered} id=${id} text=${skill.text} variables=${skill.variables} />`,
    },
    { name: "text", label: "Text", show: () => html`<${Code} text=${skill.text} label="SKILL.md" />` },
  ].filter(Boolean);
  return html`<div class="page run-page">
    <header class="run-head">
      <a class="back" href="#/skills">
        <${Icon} name="arrow-left" size="14" />
        Skills
      </a>
      <div class="run-title">
        <h1>${skill.title}</h1>
        <${Source} skill=${skill} />
        ${
          isPerson() &&
          !draft &&
          html`<div class="verbs">
            <button onClick=${() => setDraft({ text: skill.text, before: skill.text })}>
              <${Icon} name="pencil" size="14" />
              ${skill.source === "built-in" ? "Override" : "Edit"}
            </button>
            ${
              skill.source === "project" &&
              html`<button class="danger" disabled=${busy} onClick=${drop}>
                <${Icon} name="trash" size="14" />
                Delete
              </button>`
            }
          </div>`
        }
      </div>
      <p class="muted">${skill.description}</p>
    </header>
    ${
      draft
        ? html`<${SkillEditor}
          id=${id}
          draft=${draft.text}
          setDraft=${(text) => setDraft({ ...draft, text })}
          before=${skill.text}
          onSave=${save}
          onCancel=${dropDraft}
        />`
        : html`<${Tabs} tabs=${tabs} label="Skill" />`
    }
  </div>`;
}
