// The frame of every page: navigation, banner, toasts and dialogs.

import { html, useEffect, useLayoutEffect, useRef, useState } from "../view.js";
import { useKeys } from "../data/keyboard.js";
import { PHONE_PAGES, PAGES } from "../data/pages.js";
import { project, signOut } from "../data/session.js";
import { pendingAlerts, reconnectNow } from "../data/store.js";
import { connection } from "../data/stream.js";
import { Confirm } from "../ui/dialog.js";
import { Icon } from "../ui/icon.js";
import { Toasts } from "../ui/toast.js";
import { NewWork } from "../work/new_work.js";
import { openPalette, Palette } from "./palette.js";

export function Shell({ page, id, children }) {
  const main = useRef(null);
  useLayoutEffect(() => main.current.scrollTo(0, 0), [page, id]);
  return html`<div class="shell">
    <${Bar} page=${page} id=${id} />
    <div class="stage">
      <${Banner} />
      <main ref=${main} tabindex="-1">
        ${children}
      </main>
    </div>
    <${Toasts} />
    <${Confirm} />
    <${NewWork} />
    <${Palette} />
  </div>`;
}

function Bar({ page, id }) {
  const [more, setMore] = useState(false);
  const close = () => setMore(false);
  useEffect(close, [page, id]);
  useKeys({ ...(more && { Escape: close }) });
  return html`<nav class="bar ${more ? "bar-more" : ""}" aria-label="Pages">
    <a class="brand" href="#/" title="Labwright">
      <${Icon} name="flask-conical" size="18" />
      <span class="brand-words">
        Labwright
        ${
          project.value &&
          html`<span class="brand-project" title="Project folder: ${project.value}">
            ${project.value}
          </span>`
        }
      </span>
    </a>
    <button class="bar-find" onClick=${() => openPalette()}>
      <${Icon} name="search" size="14" />
      <span>Search…</span>
      <kbd>⌘K</kbd>
    </button>
    ${PAGES.map(
      (place) =>
        html`<a
          key=${place.page}
          href=${place.href}
          class=${PHONE_PAGES.has(place.page) ? "" : "bar-rest"}
          onClick=${close}
          aria-current=${place.page === page ? "page" : undefined}
        >
          <${Icon} name=${place.icon} />
          <span>${place.label}</span>
          ${place.page === "alerts" && html`<${AlertCount} />`}
        </a>`,
    )}
    <button class="bare bar-rest bar-end" onClick=${signOut}>
      <${Icon} name="log-out" />
      <span>Sign out</span>
    </button>
    <button
      class="bare bar-toggle ${PHONE_PAGES.has(page) ? "" : "bar-here"}"
      aria-expanded=${String(more)}
      onClick=${() => setMore(!more)}
    >
      <${Icon} name="ellipsis" />
      <span>More</span>
    </button>
  </nav>`;
}

function AlertCount() {
  const count = pendingAlerts.value.length;
  return count
    ? html`<span class="count" aria-label="${count} open">
      ${count}
    </span>`
    : null;
}

function Banner() {
  if (connection.value !== "gone") return null;
  return html`<div class="banner" role="alert">
    <${Icon} name="triangle-alert" />
    <span>
      <strong>The server does not respond.</strong> Runs continue without it. Start it with <code>labwright up</code>;
      this page reconnects automatically.
    </span>
    <button onClick=${reconnectNow}>Retry</button>
  </div>`;
}
