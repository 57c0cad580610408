// Adds keyboard shortcuts, selection of several alerts, and automatic updates to the alert list.
// The list also works without this script. Updates do not move rows that the user is pointing at or
// reading.
"use strict";

const bulk = document.getElementById("change-several");
const news = document.querySelector("[data-news]");
const toast = document.querySelector("[data-toast]");
const held = document.querySelector("[data-held]");
const chooseAll = document.querySelector("[data-choose-all]");
const every = document.querySelector("[data-every]");

const rows = () => [...document.querySelectorAll("[data-alert-row]")];
const box = (row) => row.querySelector(".pick input");
const link = (row) => row.querySelector(".title a");
const chosen = () => rows().filter((row) => box(row)?.checked);
const current = () => rows().findIndex((row) => row.contains(document.activeElement));
const counted = (number, word) => `${number} ${word}${number === 1 ? "" : "s"}`;

// Messages about the result of a key

let toastTimer = 0;

function showMessage(words) {
  toast.textContent = words;
  clearTimeout(toastTimer);
  toastTimer = setTimeout(() => { toast.textContent = ""; }, 4000);
}

// Selection

function showSelection() {
  if (!bulk) return;
  const all = rows().length;
  const count = chosen().length;
  const [field] = chooseAll.getElementsByTagName("input");
  field.checked = count > 0 && count === all;
  field.indeterminate = count > 0 && count < all;
  field.disabled = all === 0;
  const isEvery = Boolean(every?.querySelector("input").checked);
  const words = count ? `${count} selected` : "Select all";
  const shown = chooseAll.querySelector("[data-chosen]");
  if (shown.textContent !== words) shown.textContent = words;
  if (every) every.hidden = !isEvery && (count === 0 || count < all);
  for (const button of bulk.querySelectorAll("button")) button.disabled = !count && !isEvery;
}

function selectEach(isChosen) {
  for (const row of rows()) box(row).checked = isChosen;
  if (every && !isChosen) every.querySelector("input").checked = false;
  showSelection();
}

if (bulk) {
  chooseAll.hidden = false;
  chooseAll.addEventListener("change", (event) => selectEach(event.target.checked));
  document.addEventListener("change", (event) => {
    if (event.target.closest(".pick, .every")) showSelection();
  });
}

// Keys

function go(step) {
  const all = rows();
  if (!all.length) {
    showMessage("This list has no alerts.");
    return;
  }
  const wanted = current() + step;
  const next = Math.min(all.length - 1, Math.max(0, wanted));
  link(all[next]).focus();
  if (wanted >= all.length) showMessage("This is the last alert on this page.");
  else if (wanted < 0 && step < 0) showMessage("This is the first alert on this page.");
}

function choose() {
  const row = rows()[current()];
  if (!row || !box(row)) {
    showMessage("Press j or k to go to an alert first.");
    return;
  }
  box(row).checked = !box(row).checked;
  showSelection();
  showMessage(`${counted(chosen().length, "alert")} selected`);
}

const DOING = {
  acknowledged: "Acknowledging", resolved: "Resolving", ignored: "Ignoring", triggered: "Reopening",
};

// Changes the status of the selected alerts. If no alert is selected, changes the status of the
// alert that has the focus.
function changeStatus(status) {
  if (!bulk) return;
  const row = rows()[current()];
  if (!chosen().length && row) box(row).checked = true;
  showSelection();
  if (!chosen().length) {
    showMessage("Press j or k to go to an alert first, and x to select it.");
    return;
  }
  remember();
  showMessage(`${DOING[status]} ${counted(chosen().length, "alert")} …`);
  bulk.requestSubmit(bulk.querySelector(`[value=${status}]`));
}

// The keys j and k repeat while they are held down (keys.js).
const next = Object.assign(() => go(1), { repeats: true });
const previous = Object.assign(() => go(-1), { repeats: true });
pageKeys.add({
  j: next,
  k: previous,
  x: choose,
  a: () => changeStatus("acknowledged"),
  r: () => changeStatus("resolved"),
  i: () => changeStatus("ignored"),
  o: () => changeStatus("triggered"),
  n: () => { if (pending) showPending(); else showMessage("No new alerts."); },
  "/": () => document.getElementById("search").focus(),
});

// Highlights the whole row that contains the focus, not only the focused link.
function markCurrent() {
  const here = current();
  rows().forEach((row, index) => row.toggleAttribute("data-current", index === here));
}
document.addEventListener("focusin", markCurrent);

// After a keyboard shortcut has changed alerts, the next page sets the focus to the same position
// in the list.

const POSITION = `alerts at ${location.pathname}`;

function remember() {
  try {
    sessionStorage.setItem(POSITION, String(Math.max(0, current())));
  } catch {
    // Without session storage, the focus starts at the top of the list.
  }
}

function resume() {
  try {
    const position = sessionStorage.getItem(POSITION);
    sessionStorage.removeItem(POSITION);
    if (position === null) return;
    const all = rows();
    const row = all[Math.min(all.length - 1, Number(position))];
    if (row) link(row).focus();
  } catch {
    // Without session storage, there is no stored position.
  }
}

// Updates: when the page has changed (live.js), the script requests only the list. Rows that remain in
// the list are updated in place. Rows are added and removed immediately if the user is not using the
// list. Otherwise, a button appears that adds and removes them.

// Time in milliseconds for which a user counts as reading after the pointer has stopped.
const READS_FOR = 30000;
let pending = null;
let pointedAt = 0;

const part = (id, root = document) => root.getElementById(id);

function listAddress() {
  const address = new URL(location.href);
  address.searchParams.set("_part", "list");
  return address;
}

function isInUse() {
  const list = part("alert-rows");
  const isPointedAt = Date.now() - pointedAt < READS_FOR && list.matches(":hover");
  return pageKeys.isHelpOpen() || isPointedAt || list.contains(document.activeElement) || !getSelection().isCollapsed;
}

function changeInPlace(row, fresh) {
  if (live.getComparableHtml(row) === live.getComparableHtml(fresh)) return;
  [...row.children].forEach((cell, index) => {
    const other = fresh.children[index];
    const isKept = cell.matches(".pick") || cell.contains(document.activeElement);
    if (!isKept && live.getComparableHtml(cell) !== live.getComparableHtml(other)) cell.replaceWith(other.cloneNode(true));
  });
}

function byKey(root) {
  return new Map([...root.querySelectorAll("[data-alert-row]")].map((row) => [row.dataset.alertRow, row]));
}

function offerUpdate(fresh, now, then) {
  const added = [...then.keys()].filter((key) => !now.has(key)).length;
  for (const [key, row] of now) row.toggleAttribute("data-gone", !then.has(key));
  held.textContent = added ? `Show ${counted(added, "new alert")}` : "Show changes";
  if (held.hidden || !pending) news.textContent = held.textContent;
  held.hidden = false;
  pending = fresh;
}

// Returns the first visible row if the user has scrolled into the list. An update keeps the
// position of this row.
function firstInView() {
  if (part("alert-rows").getBoundingClientRect().top >= 0) return null;
  const edge = document.querySelector(".list-tools").getBoundingClientRect().bottom;
  return rows().find((row) => row.getBoundingClientRect().top >= edge) ?? null;
}

function applyUpdate(fresh) {
  const list = part("alert-rows");
  const focus = document.activeElement.closest?.("[data-alert-row]")?.dataset.alertRow;
  const kept = new Set(chosen().map((row) => row.dataset.alertRow));
  const first = firstInView();
  const top = first?.getBoundingClientRect().top;
  list.replaceChildren(...part("alert-rows", fresh).childNodes);
  putRange(fresh);
  const there = byKey(list);
  for (const [key, row] of there) if (box(row)) box(row).checked = kept.has(key);
  if (focus && there.has(focus)) link(there.get(focus)).focus({ preventScroll: true });
  const same = first && there.get(first.dataset.alertRow);
  if (same) scrollBy(0, same.getBoundingClientRect().top - top);
  pending = null;
  held.hidden = true;
  markCurrent();
  showSelection();
  news.textContent = "The list was updated.";
}

function putRange(fresh) {
  const [now, then] = [part("alert-range"), part("alert-range", fresh)];
  if (now.innerHTML !== then.innerHTML && !now.contains(document.activeElement)) {
    now.replaceChildren(...then.cloneNode(true).childNodes);
  }
}

function showPending() {
  if (pending) applyUpdate(pending);
}
held.addEventListener("click", showPending);

function showTabs(fresh) {
  const [now, then] = [part("alert-tabs"), part("alert-tabs", fresh)];
  const [old, updated] = [now.querySelectorAll("a"), then.querySelectorAll("a")];
  old.forEach((tab, index) => {
    if (tab.innerHTML !== updated[index].innerHTML) tab.innerHTML = updated[index].innerHTML;
  });
}

function show(fresh) {
  const list = part("alert-rows");
  showTabs(fresh);
  if (live.getComparableHtml(list) === live.getComparableHtml(part("alert-rows", fresh))) {
    putRange(fresh);
    pending = null;
    held.hidden = true;
    return;
  }
  const [now, then] = [byKey(list), byKey(part("alert-rows", fresh))];
  for (const [key, row] of now) if (then.has(key)) changeInPlace(row, then.get(key));
  if (now.size && String([...now.keys()]) === String([...then.keys()])) putRange(fresh);
  else if (isInUse()) offerUpdate(fresh, now, then);
  else applyUpdate(fresh);
}

// live.js calls this function when the page has changed.
live.update = async () => {
  if (!pageKeys.isHelpOpen()) show(await live.fetchPage(listAddress()));
};

for (const kind of ["pointermove", "pointerdown"]) {
  document.addEventListener(kind, () => { pointedAt = Date.now(); }, { passive: true });
}

// A browser that returns to this page may restore the checkboxes.
window.addEventListener("pageshow", showSelection);
showSelection();
resume();
