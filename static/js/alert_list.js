// Keys on the alert list: j and k go down and up, Enter opens, / searches, ? explains.
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
