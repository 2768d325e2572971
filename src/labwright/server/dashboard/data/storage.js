// Values kept in localStorage. If the browser forbids it, they last as long as the page.

const fallback = new Map();
export const keyOf = (name) => `labwright.${name}`;

export function recall(name, otherwise) {
  try {
    const text = localStorage.getItem(keyOf(name)) ?? fallback.get(name);
    return text == null ? otherwise : JSON.parse(text);
  } catch {
    return otherwise;
  }
}

export function remember(name, value) {
  const text = JSON.stringify(value);
  fallback.set(name, text);
  try {
    localStorage.setItem(keyOf(name), text);
  } catch {
    // Forbidden or full: the fallback serves this page.
  }
}

export const forgetCopy = (name) => fallback.delete(name);

export function forget(name) {
  forgetCopy(name);
  try {
    localStorage.removeItem(keyOf(name));
  } catch {
    // Forbidden: nothing was stored.
  }
}
