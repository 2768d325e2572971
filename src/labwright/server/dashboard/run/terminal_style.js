// xterm.js writes <style> elements, which the content security policy forbids. Its vendored copy makes <xterm-style>
// elements instead (scripts/vendor-browser-modules); this element turns their text into a constructed style sheet.

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
