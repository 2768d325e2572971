// Entry point: show the sign-in page or the page that the address names.

import { Component, effect, html, render, signal, useEffect, useMemo } from "./view.js";
import { ApiError } from "./data/api.js";
import { startKeyboard } from "./data/keyboard.js";
import { startNotifications } from "./data/notifications.js";
import { PAGES } from "./data/pages.js";
import { go, route, startRouter } from "./data/router.js";
import { takeTokenFromAddress, token } from "./data/session.js";
import { reloads, resync, startStore } from "./data/store.js";
import { startTitle } from "./data/window_title.js";
import { Message, Problem } from "./ui/message.js";
import { keepFocus } from "./shell/focus.js";
import { openPalette } from "./shell/palette.js";
import { Shell } from "./shell/shell.js";
import { SignInPage } from "./shell/signin_page.js";

// A page's module is loaded when the page is first opened.
const MODULES = {
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
    if (!Object.hasOwn(MODULES, name) || shown.value?.Show) return;
    MODULES[name]().then(
      (module) => (shown.value = { Show: module.default }),
      () => (shown.value = { error: NOT_FETCHED }),
    );
  }, [name, again]);
  if (!Object.hasOwn(MODULES, name)) return html`<${NoPage} />`;
  if (shown.value?.error) return html`<${Problem} error=${shown.value.error} />`;
  if (!shown.value) return html`<div class="loading" aria-busy="true"></div>`;
  return html`<${shown.value.Show} id=${id} key=${id} />`;
}

const NOT_FETCHED = new ApiError(
  0,
  "gone",
  "This page could not be loaded.",
  "It loads as soon as the server responds again.",
);

// Load the other pages when the browser is idle, so that they open at once, even without a server.
function startFetchingAhead() {
  const stop = effect(() => {
    if (!reloads.value) return;
    const later = window.requestIdleCallback ?? ((work) => setTimeout(work, 500));
    later(async () => {
      stop();
      for (const load of Object.values(MODULES)) await load().catch(() => {}); // loaded again when it is opened
    });
  });
}

const NoPage = () =>
  html`<${Message} icon="circle-question-mark" title="Page not found">
    <p>
      <a href="#/">Go home</a>
    </p>
  </${Message}>`;

// Show an exception of one page in its place; the navigation keeps working.
class Guard extends Component {
  componentDidCatch(fault) {
    console.error(fault);
    this.setState({ fault });
  }

  render({ children }, { fault }) {
    if (!fault) return children;
    return html`<${Message} icon="octagon-alert" title="This page crashed">
      <p class="muted">${String(fault)}</p>
      <button onClick=${() => location.reload()}>Reload</button>
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
keepFocus(); // before the router: it must see the new address before the new page is drawn
startRouter();
startKeyboard({
  ...Object.fromEntries(PAGES.map(({ key, href }) => [`g ${key}`, () => go(href)])),
  "?": () => go("#/help"),
  "/": () => token.value && openPalette(), // a page with its own search overrides this key
});
startStore();
startTitle();
startNotifications();
startFetchingAhead();
render(html`<${App} />`, document.getElementById("app"));
