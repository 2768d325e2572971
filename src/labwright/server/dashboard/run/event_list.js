// The events of a run.

import { html } from "../view.js";
import { useFetched } from "../data/fetched.js";
import { Icon } from "../ui/icon.js";
import { Message, Problem } from "../ui/message.js";
import { Ago } from "../ui/time.js";

const WHO = { person: "user", agent: "bot", system: "settings", run: "flask-conical" };

export function RunEvents({ run }) {
  const { data, problem, refresh } = useFetched(
    "events",
    { run_id: run.id, limit: 1000 },
    { refreshOn: (event) => event.run_id === run.id },
  );
  if (problem && !data) return html`<${Problem} error=${problem} retry=${refresh} />`;
  if (!data) return html`<div class="loading" aria-busy="true"></div>`;
  return html`<${EventList} events=${data} />`;
}

function EventList({ events }) {
  if (!events.length) return html`<${Message} icon="calendar" title="No events yet" />`;
  return html`<ol class="events" aria-label="Events">
    ${[...events].reverse().map(
      (event) =>
        html`<li key=${event.seq}>
          <span class="event-who" title=${event.actor}>
            <${Icon} name=${WHO[event.actor.split(":")[0]] ?? "info"} size="14" />
            ${event.actor.split(":")[0]}
          </span>
          <code class="event-type">${event.type}</code>
          <span class="event-what">${eventText(event)}</span>
          <span class="muted event-when">
            <${Ago} time=${event.time} />
          </span>
        </li>`,
    )}
  </ol>`;
}

function eventText({ type, data }) {
  if (type.endsWith(".status"))
    return `${data.from} → ${data.to}${data.reason ? `: ${String(data.reason).replaceAll("_", " ")}` : ""}`;
  if (data.text || data.message) return data.text ?? data.message;
  if (data.changed) return `changed: ${data.changed.join(", ")}`;
  return data.name ?? data.title ?? "";
}
