// Who works by keyboard stays where they were: when a button is taken away or locked by what it does, the browser would begin
// again at the top of the page. The focus goes to what was around it, not to the button beside it: whoever presses Enter
// twice must not do two things.

const PLACES = "[role=group], [aria-label], article, section, form, dialog, main";
let held = null; // the button that has the focus, the places around it, innermost first, and that which has it instead
let behind = []; // places around the last button outside of dialogs: what one of them was opened from

export function startFocusKeeper() {
  document.addEventListener("focusin", ({ target }) => hold(target));
  document.addEventListener("focusout", ({ target }) => queueMicrotask(() => (letGo(target), bringBack())));
  window.addEventListener("hashchange", () => ([held, behind] = [null, []])); // another page
  new MutationObserver(bringBack).observe(document.body, {
    childList: true,
    subtree: true,
    attributeFilter: ["disabled"],
  });
}

function hold(element) {
  if (held?.instead === element) return;
  held = element.matches("button") ? { element, around: placesAround(element) } : null;
  if (held && !element.closest("dialog")) behind = held.around;
}

// Left by the person: it could still have the focus.
function letGo(element) {
  if ((held?.element === element || held?.instead === element) && isThere(element)) held = null;
}

const isThere = (element) => element.isConnected && !element.matches(":disabled");

function placesAround(element) {
  const found = [];
  for (let place = element.parentElement.closest(PLACES); place; place = place.parentElement.closest(PLACES))
    found.push(place);
  return found;
}

function bringBack() {
  const here = document.activeElement;
  if (!held || (here !== document.body && here !== held.instead)) return;
  if (isThere(held.element)) held.element.focus({ preventScroll: true });
  else if (here === document.body) settleOn([...held.around, ...behind].find((place) => place.isConnected));
}

function settleOn(place) {
  if (!place) return;
  held.instead = place;
  if (!place.hasAttribute("tabindex")) place.setAttribute("tabindex", "-1");
  place.focus({ preventScroll: true });
}
