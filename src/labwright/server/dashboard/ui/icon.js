import { h } from "../view.js";
import icons from "../vendor/lucide.js";

// A decorative icon. A button that shows only an icon needs its own label.
export function Icon({ name, size = 16 }) {
  const shape = { width: size, height: size, viewBox: "0 0 24 24", fill: "none", stroke: "currentColor" };
  const line = { "stroke-width": 2, "stroke-linecap": "round", "stroke-linejoin": "round" };
  const parts = icons[name].map(([tag, attributes]) => h(tag, attributes));
  return h("svg", { class: "icon", "aria-hidden": "true", ...shape, ...line }, parts);
}
