// Where it starts: sign-in or the page that the address names.

import { startKeyboard } from "./keyboard.js";
import { AlertsPage } from "./pages/alerts.js";
import { RunPage } from "./pages/run.js";
import { RunsPage } from "./pages/runs.js";
import { SignInPage } from "./pages/signin.js";
import { Message } from "./parts/message.js";
import { Shell } from "./parts/shell.js";
import { go, route, startRouter } from "./router.js";
import { takeTokenFromAddress, token } from "./session.js";
import { startStore } from "./store.js";
import { Component, html, render } from "./ui.js";

function Page() {
  const { page, id } = route.value;
  if (page === "runs" && id) return html`<${RunPage} id=${id} key=${id} />`;
  if (page === "runs") return html`<${RunsPage} />`;
  if (page === "alerts") return html`<${AlertsPage} />`;
  return html`<${Message} icon="circle-question-mark" title="There is no such page">
    <p><a href="#/runs">Go to the runs</a></p>
  </${Message}>`;
}

// A fault in one page is shown in its place; the bar beside it goes on working.
class Guard extends Component {
  componentDidCatch(fault) {
    console.error(fault);
    this.setState({ fault });
  }

  render({ children }, { fault }) {
    if (!fault) return children;
    return html`<${Message} icon="octagon-alert" title="This page hit a fault of its own">
      <p class="muted">${String(fault)}</p>
      <button onClick=${() => location.reload()}>Load it again</button>
    </${Message}>`;
  }
}

function App() {
  if (!token.value) return html`<${SignInPage} />`;
  const { page, id } = route.value;
  return html`<${Shell} page=${page} id=${id}><${Guard} key="${page}/${id}"><${Page} /></${Guard}></${Shell}>`;
}

takeTokenFromAddress();
startRouter();
startKeyboard({ "g r": () => go("#/runs"), "g a": () => go("#/alerts") });
startStore();
render(html`<${App} />`, document.getElementById("app"));
