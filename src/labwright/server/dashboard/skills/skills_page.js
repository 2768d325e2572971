// All skills: the built-in ones and the project's own.

import { html, useRef } from "../view.js";
import { post } from "../data/api.js";
import { useFetched, eventTypes } from "../data/fetched.js";
import { useListKeys } from "../data/keyboard.js";
import { go, skillAddress } from "../data/router.js";
import { isPerson } from "../data/session.js";
import { useTitle } from "../data/window_title.js";
import { useDraft } from "../ui/drafts.js";
import { Icon } from "../ui/icon.js";
import { Problem } from "../ui/message.js";
import { showToast } from "../ui/toast.js";
import { SkillEditor } from "./editor.js";

const TEMPLATE = `---
name: my-skill
description: What it does, and when to use it.
metadata:
  variables: experiment_context
---
# My skill

{{experiment_context}}
`;

export default function SkillsPage() {
  useTitle("Skills");
  const { data, problem, refresh } = useFetched("prompt-skills", {}, { refreshOn: eventTypes("skill.") });
  const [draft, setDraft, dropDraft] = useDraft("new skill");
  const box = useRef(null);
  useListKeys(box);
  if (problem && !data) return html`<${Problem} error=${problem} retry=${refresh} />`;
  const save = async (text) => {
    const made = await post("prompt-skills", { text });
    setDraft(null);
    showToast("Skill saved.");
    go(skillAddress(made.id));
  };
  return html`<div class="page list-page">
    <header class="page-head">
      <h1>Skills</h1>
      ${
        isPerson() &&
        !draft &&
        html`<div class="verbs">
          <button onClick=${() => setDraft({ text: TEMPLATE, before: TEMPLATE })}>
            <${Icon} name="plus" size="14" />
            New skill
          </button>
        </div>`
      }
    </header>
    ${
      draft &&
      html`<div class="page-body">
        <${SkillEditor}
          id="draft"
          draft=${draft.text}
          setDraft=${(text) => setDraft({ ...draft, text })}
          before=""
          onSave=${save}
          onCancel=${dropDraft}
        />
      </div>`
    }
    ${!data && html`<div class="loading" aria-busy="true"></div>`}
    ${
      data &&
      !draft &&
      html`<p class="muted page-note">
        A skill is a text for models, filled with the current project state. An edited built-in skill becomes the
        project's version; delete it to get the built-in skill back.
      </p>
      <ul class="lines" ref=${box}>
        ${data.map(
          (skill) =>
            html`<li class="run-line" key=${skill.id}>
              <${Source} skill=${skill} />
              <a href=${skillAddress(skill.id)} title=${skill.title}>
                ${skill.title}
              </a>
              <span
                class="run-line-why skill-about ${skill.fault ? "hint-bad" : "muted"}"
                title=${skill.fault || skill.description}
              >
                ${skill.fault || skill.description}
              </span>
            </li>`,
        )}
      </ul>`
    }
  </div>`;
}

export const Source = ({ skill }) =>
  html`<span class="tag skill-source">
    ${skill.source === "built-in" ? "built-in" : skill.overrides ? "overrides" : "project"}
  </span>`;
