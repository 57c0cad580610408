// The alert list: keys (j and k go down and up, Enter opens, / searches, ? explains), and a word
// when the list has changed meanwhile. It never moves under the reader's eyes.
"use strict";

const rows = [...document.querySelectorAll("[data-alert-row]")];
const help = document.getElementById("shortcuts");
const helpButton = document.querySelector("[data-shortcuts]");

function current() {
  return rows.findIndex((row) => row.contains(document.activeElement));
}

function go(step) {
  if (!rows.length) return;
  const next = Math.min(rows.length - 1, Math.max(0, current() + step));
  rows[next].querySelector("a").focus();
}

const KEYS = {
  j: () => go(1),
  k: () => go(-1),
  "/": () => document.querySelector("[type=search]")?.focus(),
  "?": () => help.showModal(),
};

document.addEventListener("keydown", (event) => {
  const isTyping = event.target.closest("input, textarea, select, dialog");
  if (isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
  const act = KEYS[event.key];
  if (!act) return;
  event.preventDefault();
  act();
});

// Which row the focus is in shows on the whole row, not on the link alone.
document.addEventListener("focusin", () => {
  const here = current();
  rows.forEach((row, index) => row.toggleAttribute("data-current", index === here));
});

if (helpButton) {
  helpButton.hidden = false;
  helpButton.addEventListener("click", () => help.showModal());
}

// News: the same page is asked for now and then, and compared without its times.

const LOOK_EVERY = 30000;
const news = document.querySelector("[data-news]");

function gist(page) {
  const parts = page.querySelectorAll("[data-alert-row] a, [data-alert-row] .events, [data-alert-row] .status, .tabs .badge");
  return [...parts].map((part) => part.textContent.trim()).join("\n");
}

async function look() {
  if (document.hidden || !news.hidden) return;
  try {
    const answer = await fetch(location.href, { credentials: "same-origin" });
    // A redirect leads to the sign-in page: that is no news about alerts.
    if (!answer.ok || answer.redirected) return;
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    news.hidden = gist(page) === gist(document);
  } catch {
    // Away for a moment; the next look will tell.
  }
}

if (news) setInterval(look, LOOK_EVERY);
