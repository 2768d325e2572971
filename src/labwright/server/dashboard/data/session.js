// Who is signed in: the token, where it comes from and when it goes.

import { forget, forgetCopy, keyOf, recall, remember } from "./storage.js";
import { effect, signal, untracked } from "../view.js";

export const token = signal(recall("token", ""));
export const scope = signal(""); // person, agent or viewer, once the server has said so
export const project = signal(""); // the name of its folder, likewise
export const mayWrite = () => scope.value !== "viewer";
export const isPerson = () => scope.value === "person";
export const whyOut = signal(""); // shown on the sign-in page
export const signOuts = signal(recall("sign-outs", 0)); // of this browser so far: who comes after one may be somebody else

export function signIn(text) {
  remember("token", text);
  whyOut.value = "";
  token.value = text;
}

export function signOut() {
  signOuts.value += 1;
  remember("sign-outs", signOuts.value);
  dropToken("You signed out.");
}

// What was theirs goes with them: at once, in every tab.
export function onSignOut(work) {
  let before = signOuts.value;
  effect(() => {
    if (signOuts.value === before) return;
    before = signOuts.value;
    untracked(work);
  });
}

// Also for whoever did not leave: their token has expired, say.
export function dropToken(why) {
  forget("token");
  whyOut.value = why;
  token.value = "";
}

// Signing out or in counts for all tabs.
addEventListener("storage", ({ key }) => {
  if (key === keyOf("sign-outs")) takeSignOuts();
  if (key !== keyOf("token")) return;
  forgetCopy("token"); // what this page remembers is no longer so
  const kept = recall("token", "");
  whyOut.value = kept ? "" : "You signed out in another tab.";
  token.value = kept;
});

function takeSignOuts() {
  forgetCopy("sign-outs");
  signOuts.value = recall("sign-outs", 0);
}

// The printed link is `/#token=…`, or `/#token=…&/plans/ID` where it leads to a page. The token leaves the address
// before anything else happens, so that it is neither in the history nor in a picture of the window. Answers whether
// there was one.
export function takeTokenFromAddress() {
  const match = /^#token=([^&]*)(?:&(\/.*))?/.exec(location.hash);
  if (!match) return false;
  history.replaceState(null, "", `${location.pathname}${location.search}#${match[2] ?? "/"}`);
  const found = decoded(match[1]).trim();
  if (/^[\x21-\x7e]+$/.test(found)) signIn(found);
  else dropToken("The link has no usable token in it."); // other characters cannot be sent in a header
  return true;
}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
