// Where it starts: sign-in or the page that the address names.

import { ApiError } from "./api.js";
import { startFocusKeeper } from "./focus_keeper.js";
import { startKeyboard } from "./keyboard.js";
import { startNotices } from "./notices.js";
import { SignInPage } from "./pages/signin.js";
import { Message, Problem } from "./parts/message.js";
import { openPalette } from "./parts/palette.js";
import { Shell } from "./parts/shell.js";
import { PLACES } from "./places.js";
import { go, route, startRouter } from "./router.js";
import { takeTokenFromAddress, token } from "./session.js";
import { reloads, resync, startStore } from "./store.js";
import { Component, effect, html, render, signal, useEffect, useMemo } from "./ui.js";
import { startTitle } from "./window_title.js";

// Each page is fetched when it is first opened: who looks at runs does not wait for what draws plans.
const PAGES = {
  home: () => import("./pages/home.js"),
  runs: () => import("./pages/runs.js"),
  "runs/": () => import("./pages/run.js"),
  compare: () => import("./pages/compare.js"),
  sweeps: () => import("./pages/sweeps.js"),
  "sweeps/": () => import("./pages/sweep.js"),
  plans: () => import("./pages/plans.js"),
  "plans/": () => import("./pages/plan.js"),
  chat: () => import("./pages/chat.js"),
  "chat/": () => import("./pages/chat.js"),
  wild: () => import("./pages/wilds.js"),
  "wild/": () => import("./pages/wild.js"),
  cluster: () => import("./pages/cluster.js"),
  alerts: () => import("./pages/alerts.js"),
  skills: () => import("./pages/skills.js"),
  "skills/": () => import("./pages/skill.js"),
  memory: () => import("./pages/memory.js"),
  settings: () => import("./pages/settings.js"),
  help: () => import("./pages/help.js"),
};

function Page({ page, id }) {
  const name = id ? `${page}/` : page;
  const shown = useMemo(() => signal(null), [name]);
  const again = resync.value;
  useEffect(() => {
    if (!Object.hasOwn(PAGES, name) || shown.value?.Show) return;
    PAGES[name]().then(
      (module) => (shown.value = { Show: module.default }),
      () => (shown.value = { error: NOT_FETCHED }),
    );
  }, [name, again]);
  if (!Object.hasOwn(PAGES, name)) return html`<${NoPage} />`;
  if (shown.value?.error) return html`<${Problem} error=${shown.value.error} />`;
  if (!shown.value) return html`<div class="loading" aria-busy="true"></div>`;
  return html`<${shown.value.Show} id=${id} key=${id} />`;
}

const NOT_FETCHED = new ApiError(0, "gone", "This page could not be fetched.", "It is shown as soon as the server answers again.");

// The other pages, once the first stands and nothing else is to do: then they open at once, and without a server, too.
function startFetchingAhead() {
  const stop = effect(() => {
    if (!reloads.value) return;
    const later = window.requestIdleCallback ?? ((work) => setTimeout(work, 500));
    later(async () => {
      stop();
      for (const load of Object.values(PAGES)) await load().catch(() => {}); // asked for again when it is opened
    });
  });
}

const NoPage = () => html`<${Message} icon="circle-question-mark" title="There is no such page">
  <p><a href="#/">Go home</a></p>
</${Message}>`;

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
  return html`<${Shell} page=${page} id=${id}><${Guard} key="${page}/${id}"><${Page} page=${page} id=${id} /></${Guard}></${Shell}>`;
}

takeTokenFromAddress();
startFocusKeeper(); // before the router: it is to know of another page before that is drawn
startRouter();
startKeyboard({
  ...Object.fromEntries(PLACES.map(({ key, href }) => [`g ${key}`, () => go(href)])),
  "?": () => go("#/help"),
  "/": () => token.value && openPalette(), // a page that has a search of its own takes this key
});
startStore();
startTitle();
startNotices();
startFetchingAhead();
render(html`<${App} />`, document.getElementById("app"));
