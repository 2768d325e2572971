// Messages for empty pages and errors: what is missing, why, and what to do.

import { html, useEffect, useState } from "../view.js";
import { PAGES } from "../data/pages.js";
import { route } from "../data/router.js";
import { Icon } from "./icon.js";

// A server message with `code` between backticks.
export const HintText = ({ text }) =>
  text.split(/`([^`]+)`/).map((part, at) => (at % 2 ? html`<code key=${at}>${part}</code>` : part));

export function Message({ icon, title, children }) {
  return html`<div class="message">
    ${icon && html`<${Icon} name=${icon} size="28" />`}
    <h2>${title}</h2>
    ${children}
  </div>`;
}

export const Problem = ({ error, retry }) =>
  html`<${Message} icon="octagon-alert" title=${error.message}>
    ${
      error.status === 404 && !retry
        ? html`<${NotThere} />`
        : error.hint &&
          html`<p class="muted">
            <${HintText} text=${error.hint} />
          </p>`
    }
    ${retry && html`<button onClick=${retry}>Try again</button>`}
  </${Message}>`;

// Link to the list page instead of the server's hint, which names API calls.
function NotThere() {
  const place = PAGES.find(({ page }) => page === route.value.page) ?? PAGES[0];
  return html`<p class="muted">It was deleted or belongs to another project.</p>
  <p>
    <a href=${place.href}>${place.label}</a>
  </p>`;
}

// A component whose module is loaded when it is first shown.
export function Lazy({ load, ...props }) {
  const [found, setFound] = useState(null);
  useEffect(() => {
    load().then(
      (module) => setFound({ Show: module.default }),
      () => setFound({ error: new Error("This part of the page could not be loaded.") }),
    );
  }, []);
  if (!found) return html`<div class="loading" aria-busy="true"></div>`;
  if (found.error) return html`<${Problem} error=${found.error} />`;
  return html`<${found.Show} ...${props} />`;
}
