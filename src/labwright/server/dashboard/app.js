// Where it starts: sign-in or the page that the address names.

import { ApiError } from "./data/api.js";
import { startNotices } from "./data/notices.js";
import { PLACES } from "./data/places.js";
import { go, route, startRouter } from "./data/router.js";
import { takeTokenFromAddress, token } from "./data/session.js";
import { reloads, resync, startStore } from "./data/store.js";
import { startTitle } from "./data/window_title.js";
import { startFocusKeeper } from "./shell/focus_keeper.js";
import { openPalette } from "./shell/palette.js";
import { Shell } from "./shell/shell.js";
import { SignInPage } from "./shell/signin_page.js";
import { Component, effect, html, render, signal, useEffect, useMemo } from "./view.js";
import { startKeyboard } from "./data/keyboard.js";
import { Message, Problem } from "./ui/message.js";

// Each page is fetched when it is first opened: who looks at runs does not wait for what draws plans.
const PAGES = {
  home: () => import("./home/home_page.js"),
  runs: () => import("./runs/runs_page.js"),
  "runs/": () => import("./run/run_page.js"),
  compare: () => import("./compare/compare_page.js"),
  sweeps: () => import("./sweeps/sweeps_page.js"),
  "sweeps/": () => import("./sweeps/sweep_page.js"),
  plans: () => import("./plans/plans_page.js"),
  "plans/": () => import("./plans/plan_page.js"),
  chat: () => import("./chat/chat_page.js"),
  "chat/": () => import("./chat/chat_page.js"),
  wild: () => import("./wild/wilds_page.js"),
  "wild/": () => import("./wild/wild_page.js"),
  cluster: () => import("./cluster/cluster_page.js"),
  alerts: () => import("./alerts/alerts_page.js"),
  skills: () => import("./skills/skills_page.js"),
  "skills/": () => import("./skills/skill_page.js"),
  memory: () => import("./skills/memory_page.js"),
  settings: () => import("./settings/settings_page.js"),
  help: () => import("./shell/help_page.js"),
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

const NOT_FETCHED = new ApiError(
  0,
  "gone",
  "This page could not be fetched.",
  "It is shown as soon as the server answers again.",
);

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

const NoPage = () =>
  html`<${Message} icon="circle-question-mark" title="There is no such page">
    <p>
      <a href="#/">Go home</a>
    </p>
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
  return html`<${Shell} page=${page} id=${id}>
    <${Guard} key="${page}/${id}">
      <${Page} page=${page} id=${id} />
    </${Guard}>
  </${Shell}>`;
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
