// Keep the keyboard focus in place. When a focused button is removed or disabled, the browser would move the focus to
// the top of the page. Move it to the surrounding element instead, not to the next button: a second Enter must not do
// something else.

const CONTAINERS = "[role=group], [aria-label], article, section, form, dialog, main";
let focused = null; // the focused button, the elements around it (innermost first), and its substitute
let behind = []; // elements around the last button outside of dialogs

export function keepFocus() {
  document.addEventListener("focusin", ({ target }) => hold(target));
  document.addEventListener("focusout", ({ target }) => queueMicrotask(() => (release(target), restore())));
  window.addEventListener("hashchange", () => ([focused, behind] = [null, []])); // another page
  new MutationObserver(restore).observe(document.body, {
    childList: true,
    subtree: true,
    attributeFilter: ["disabled"],
  });
}

function hold(element) {
  if (focused?.instead === element) return;
  focused = element.matches("button") ? { element, around: containersOf(element) } : null;
  if (focused && !element.closest("dialog")) behind = focused.around;
}

// The user moved the focus: the button is still there.
function release(element) {
  if ((focused?.element === element || focused?.instead === element) && canFocus(element)) focused = null;
}

const canFocus = (element) => element.isConnected && !element.matches(":disabled");

function containersOf(element) {
  const found = [];
  for (let place = element.parentElement.closest(CONTAINERS); place; place = place.parentElement.closest(CONTAINERS))
    found.push(place);
  return found;
}

function restore() {
  const here = document.activeElement;
  if (!focused || (here !== document.body && here !== focused.instead)) return;
  if (canFocus(focused.element)) focused.element.focus({ preventScroll: true });
  else if (here === document.body) focusOn([...focused.around, ...behind].find((place) => place.isConnected));
}

function focusOn(place) {
  if (!place) return;
  focused.instead = place;
  if (!place.hasAttribute("tabindex")) place.setAttribute("tabindex", "-1");
  place.focus({ preventScroll: true });
}
