// The session: the token, the user's scope, sign-in and sign-out.

import { effect, signal, untracked } from "../view.js";
import { forget, forgetCopy, keyOf, recall, remember } from "./storage.js";

export const token = signal(recall("token", ""));
export const scope = signal(""); // person, agent or viewer; empty until the server responds
export const project = signal(""); // name of the project's folder
export const mayWrite = () => scope.value !== "viewer";
export const isPerson = () => scope.value === "person";
export const signOutReason = signal(""); // shown on the sign-in page
export const signOuts = signal(recall("sign-outs", 0)); // number of sign-outs in this browser

export function signIn(text) {
  remember("token", text);
  signOutReason.value = "";
  token.value = text;
}

export function signOut() {
  signOuts.value += 1;
  remember("sign-outs", signOuts.value);
  clearToken("You signed out.");
}

// Run `work` when the user signs out, in every tab: their data must not stay for the next user.
export function onSignOut(work) {
  let before = signOuts.value;
  effect(() => {
    if (signOuts.value === before) return;
    before = signOuts.value;
    untracked(work);
  });
}

// Forget the token without a sign-out, for example because it has expired.
export function clearToken(why) {
  forget("token");
  signOutReason.value = why;
  token.value = "";
}

// Sign-in and sign-out apply to all tabs.
addEventListener("storage", ({ key }) => {
  if (key === keyOf("sign-outs")) takeSignOuts();
  if (key !== keyOf("token")) return;
  forgetCopy("token"); // the cached value is outdated
  const kept = recall("token", "");
  signOutReason.value = kept ? "" : "You signed out in another tab.";
  token.value = kept;
});

function takeSignOuts() {
  forgetCopy("sign-outs");
  signOuts.value = recall("sign-outs", 0);
}

// Sign in with the token of a printed link: `/#token=…` or `/#token=…&/plans/ID`. Remove it from the address first, so
// that it is neither in the history nor on a screenshot. Return whether there was a token.
export function takeTokenFromAddress() {
  const match = /^#token=([^&]*)(?:&(\/.*))?/.exec(location.hash);
  if (!match) return false;
  history.replaceState(null, "", `${location.pathname}${location.search}#${match[2] ?? "/"}`);
  const found = decoded(match[1]).trim();
  if (/^[\x21-\x7e]+$/.test(found)) signIn(found);
  else clearToken("The link contains no valid token."); // other characters cannot be sent in a header
  return true;
}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
