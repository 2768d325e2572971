// A panel over the page. Escape closes it; the focus goes back to where it was.

import { html, useEffect, useRef } from "../ui.js";

export function Dialog({ title, onClose, wide = false, children }) {
  const ref = useRef(null);
  useEffect(() => {
    const before = document.activeElement;
    ref.current.showModal();
    return () => before?.focus?.();
  }, []);
  const onCancel = (event) => {
    event.preventDefault(); // closed by being taken out of the page
    onClose();
  };
  return html`<dialog ref=${ref} class="dialog ${wide ? "dialog-wide" : ""}" onCancel=${onCancel} aria-label=${title}><h2>${title}</h2>${children}</dialog>`;
}
