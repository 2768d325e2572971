// The terminal writes its rules into <style> elements, which is inline style: the page's policy forbids it. Its vendored
// copy makes <xterm-style> elements in their place (scripts/vendor-browser-modules); their text becomes a constructed
// style sheet, which is code of ours.

class TerminalStyle extends HTMLElement {
  #sheet = new CSSStyleSheet();

  connectedCallback() {
    document.adoptedStyleSheets = [...document.adoptedStyleSheets, this.#sheet];
  }

  disconnectedCallback() {
    document.adoptedStyleSheets = document.adoptedStyleSheets.filter((sheet) => sheet !== this.#sheet);
  }

  set textContent(rules) {
    this.#sheet.replaceSync(rules);
  }
}

customElements.define("xterm-style", TerminalStyle);
