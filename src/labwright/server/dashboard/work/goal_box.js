// A field for a goal that becomes a plan. Nothing runs before a person approves it.

import { html } from "../view.js";
import { post } from "../data/api.js";
import { go, planAddress } from "../data/router.js";
import { mayWrite } from "../data/session.js";
import { useDraft } from "../ui/drafts.js";
import { Icon } from "../ui/icon.js";
import { useVerb } from "../ui/verb.js";

const TITLE_LENGTH = 80;

export function GoalBox() {
  const [goal, setGoal] = useDraft("goal", "");
  const [busy, run] = useVerb();
  const create = async (text) => {
    const plan = await post("plans", { title: text.split("\n")[0].slice(0, TITLE_LENGTH), goal: text, compile: {} });
    setGoal("");
    go(planAddress(plan.id));
  };
  const submit = (event) => {
    event.preventDefault();
    if (goal.trim()) run(() => create(goal.trim()), { keepBusy: true });
  };
  if (!mayWrite()) return null;
  return html`<form class="goal-box" onSubmit=${submit}>
    <label class="goal-field">
      <${Icon} name="target" />
      <input
        type="text"
        aria-label="Goal"
        placeholder="What do you want to find out? For example: lr 0.1 and 0.01, 3 seeds, metric val_acc"
        value=${goal}
        maxlength="4000"
        onInput=${(event) => setGoal(event.currentTarget.value)}
      />
    </label>
    <button class="primary" disabled=${busy || !goal.trim()}>
      Make a plan
    </button>
  </form>`;
}
