// Tabs. The open one is in the address.

import { html, useLayoutEffect, useRef } from "../view.js";
import { route, setQuery } from "../data/router.js";

// `tabs`: { name, label, show() } each.
export function Tabs({ tabs, label }) {
  const asked = route.value.query.get("tab");
  const current = tabs.find(({ name }) => name === asked) ?? tabs[0];
  const list = useRef(null);
  useLayoutEffect(() => {
    // On a phone the tabs may be wider than the window: scroll to the open one.
    list.current.querySelector("[aria-selected=true]").scrollIntoView({ block: "nearest", inline: "nearest" });
  }, [current.name]);
  const onKeyDown = (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const next = tabs[(tabs.indexOf(current) + step + tabs.length) % tabs.length];
    setQuery({ tab: next === tabs[0] ? "" : next.name });
    event.currentTarget.querySelector(`[data-tab="${next.name}"]`).focus();
  };
  return html`<div ref=${list} class="tabs" role="tablist" aria-label=${label} onKeyDown=${onKeyDown}>
    ${tabs.map(
      (tab) =>
        html`<button
          key=${tab.name}
          data-tab=${tab.name}
          role="tab"
          id="tab-${tab.name}"
          aria-selected=${String(tab === current)}
          aria-controls="tab-panel"
          tabindex=${tab === current ? 0 : -1}
          onClick=${() => setQuery({ tab: tab === tabs[0] ? "" : tab.name })}
        >
          ${tab.label}
        </button>`,
    )}
  </div>
  <div
    id="tab-panel"
    class="tab-panel"
    role="tabpanel"
    aria-labelledby="tab-${current.name}"
    key=${current.name}
  >
    ${current.show()}
  </div>`;
}
