// The alert list: keys, choosing several, and fresh rows without a reload. The page works without
// it, and with it nothing moves that somebody is pointing at, typing into or has chosen.
"use strict";

const bulk = document.getElementById("change-several");
const help = document.getElementById("shortcuts");
const news = document.querySelector("[data-news]");
const chooseAll = document.querySelector("[data-choose-all]");

const rows = () => [...document.querySelectorAll("[data-alert-row]")];
const box = (row) => row.querySelector("input[name=iid]");
const chosen = () => rows().filter((row) => box(row).checked);
const current = () => rows().findIndex((row) => row.contains(document.activeElement));

// Choosing

function showChosen() {
  const all = rows().length;
  const count = chosen().length;
  const [field] = chooseAll.getElementsByTagName("input");
  field.checked = count > 0 && count === all;
  field.indeterminate = count > 0 && count < all;
  field.disabled = all === 0;
  const words = count ? `${count} selected` : "Select all";
  const shown = chooseAll.querySelector("[data-chosen]");
  if (shown.textContent !== words) shown.textContent = words;
  for (const button of bulk.querySelectorAll("button")) button.disabled = count === 0;
}

chooseAll.hidden = false;
chooseAll.addEventListener("change", (event) => {
  for (const row of rows()) box(row).checked = event.target.checked;
  showChosen();
});
document.addEventListener("change", (event) => {
  if (event.target.name === "iid") showChosen();
});

// Keys

function go(step) {
  const all = rows();
  if (!all.length) return;
  const next = Math.min(all.length - 1, Math.max(0, current() + step));
  all[next].querySelector("a").focus();
}

function choose() {
  const row = rows()[current()];
  if (!row) return;
  box(row).checked = !box(row).checked;
  showChosen();
}

// A letter works on what is chosen, or else on the alert that has the focus.
function give(status) {
  const row = rows()[current()];
  if (!chosen().length && row) box(row).checked = true;
  showChosen();
  if (!chosen().length) return;
  remember();
  bulk.requestSubmit(bulk.querySelector(`[value=${status}]`));
}

const KEYS = {
  j: () => go(1),
  k: () => go(-1),
  x: choose,
  a: () => give("acknowledged"),
  r: () => give("resolved"),
  i: () => give("ignored"),
  o: () => give("triggered"),
  "/": () => document.getElementById("search").focus(),
  "?": () => help.showModal(),
};

function isTyping(target) {
  const field = target.closest("input, textarea, select, [contenteditable]");
  return help.open || (field && field.type !== "checkbox");
}

document.addEventListener("keydown", (event) => {
  if (isTyping(event.target) || event.ctrlKey || event.metaKey || event.altKey) return;
  const act = KEYS[event.key];
  if (!act || event.repeat && !"jk".includes(event.key)) return;
  event.preventDefault();
  act();
});

// Which row the focus is in shows on the whole row, not on the link alone.
function markCurrent() {
  const here = current();
  rows().forEach((row, index) => row.toggleAttribute("data-current", index === here));
}
document.addEventListener("focusin", markCurrent);

const helpButton = document.querySelector("[data-shortcuts]");
helpButton.hidden = false;
helpButton.addEventListener("click", () => help.showModal());

// Who changed alerts by a key goes on at the position where they were.

const POSITION = `alerts at ${location.pathname}`;

function remember() {
  try {
    sessionStorage.setItem(POSITION, String(Math.max(0, current())));
  } catch {
    // Then they start at the top.
  }
}

function resume() {
  try {
    const position = sessionStorage.getItem(POSITION);
    sessionStorage.removeItem(POSITION);
    if (position === null) return;
    const all = rows();
    all[Math.min(all.length - 1, Number(position))]?.querySelector("a").focus();
  } catch {
    // As above.
  }
}

// Fresh rows: the list alone is asked for, and put in place where it differs.

const REFRESH_EVERY = 10000;
let isAsking = false;

function listAddress() {
  const address = new URL(location.href);
  address.searchParams.set("_part", "list");
  address.hash = "";
  return address;
}

// Times go by on their own, and show what was chosen (page.js); they are no difference.
function gist(part) {
  const copy = part.cloneNode(true);
  for (const time of copy.querySelectorAll("time")) {
    time.textContent = "";
    time.removeAttribute("class");
    time.removeAttribute("data-exact");
  }
  for (const row of copy.querySelectorAll("[data-current]")) row.removeAttribute("data-current");
  return copy.innerHTML;
}

// The position of the focus, in words that are true of the new rows as well.
function focusPosition(part) {
  const active = document.activeElement;
  if (!part.contains(active)) return null;
  const row = active.closest("[data-alert-row]");
  if (!row) return active.href ? `a[href="${CSS.escape(active.getAttribute("href"))}"]` : null;
  const inRow = active.name === "iid" ? "input[name=iid]" : "a";
  return `[data-alert-row="${row.dataset.alertRow}"] ${inRow}`;
}

function put(part, fresh) {
  if (gist(part) === gist(fresh)) return false;
  const focus = focusPosition(part);
  const kept = new Set(chosen().map((row) => row.dataset.alertRow));
  part.replaceChildren(...fresh.childNodes);
  for (const row of rows()) box(row).checked = kept.has(row.dataset.alertRow);
  if (focus) part.querySelector(focus)?.focus({ preventScroll: true });
  markCurrent();
  showChosen();
  return true;
}

async function refresh() {
  if (document.hidden || isAsking || help.open) return;
  isAsking = true;
  try {
    const answer = await fetch(listAddress(), { credentials: "same-origin" });
    // A redirect leads to the sign-in page: that is no list.
    if (!answer.ok || answer.redirected) return;
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const before = rows().length;
    const changed = ["alert-tabs", "alert-rows"].filter((id) =>
      put(document.getElementById(id), page.getElementById(id)));
    if (changed.includes("alert-rows") && rows().length !== before) news.textContent = "The list has changed.";
  } catch {
    // Away for a moment; the next look will tell.
  } finally {
    isAsking = false;
  }
}

setInterval(refresh, REFRESH_EVERY);
document.addEventListener("visibilitychange", refresh);

// A browser that comes back to this page may have kept the boxes as they were.
window.addEventListener("pageshow", showChosen);
showChosen();
resume();
