// A button that opens a menu. Escape, a click outside and leaving with Tab close it.

import { html, useEffect, useRef, useState } from "../view.js";
import { Icon } from "./icon.js";

export function Menu({ label, icon, children, active = false }) {
  const [open, setOpen] = useState(false);
  const box = useRef(null);
  useEffect(() => {
    if (!open) return undefined;
    const outside = (event) => !box.current.contains(event.target) && setOpen(false);
    addEventListener("pointerdown", outside);
    addEventListener("focusin", outside);
    return () => {
      removeEventListener("pointerdown", outside);
      removeEventListener("focusin", outside);
    };
  }, [open]);
  // Focus the button first: a dialog opened by a menu item returns the focus there.
  const close = () => {
    setOpen(false);
    box.current.querySelector("button").focus();
  };
  const onKeyDown = (event) => {
    if (event.key !== "Escape" || !open) return;
    event.stopPropagation();
    close();
  };
  return html`<div class="menu" ref=${box} onKeyDown=${onKeyDown}>
    <button aria-expanded=${String(open)} class=${active ? "menu-active" : ""} onClick=${() => setOpen(!open)}>
      ${icon && html`<${Icon} name=${icon} size="14" />`}
      ${label}
      <${Icon} name="chevron-down" size="12" />
    </button>
    ${
      open &&
      html`<div class="menu-panel" role="group" aria-label=${label}>
        ${typeof children === "function" ? children(close) : children}
      </div>`
    }
  </div>`;
}
