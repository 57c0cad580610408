// Behavior of all pages: switches for the theme and exact times, copy buttons, menus and dialogs.
"use strict";

// Theme: the user's choice, or the theme of the system if the user has not chosen one.

const themeSwitch = document.querySelector("[data-theme-switch]");

function keep(name, value) {
  try {
    if (value) localStorage.setItem(name, value);
    else localStorage.removeItem(name);
  } catch {
    // Without storage, the choice applies only to this page.
  }
}

function kept(name) {
  try {
    return localStorage.getItem(name) || "";
  } catch {
    return "";
  }
}

// Sets up a group of buttons in which one button is pressed. `choose` receives the value of that
// button.
function setUpSwitch(group, value, choose) {
  const show = (pressed) => {
    for (const button of group.querySelectorAll("button")) {
      button.setAttribute("aria-pressed", String(button.value === pressed));
    }
  };
  group.hidden = false;
  show(value);
  group.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (!button) return;
    show(button.value);
    choose(button.value);
  });
}

function chooseTheme(theme) {
  const root = document.documentElement;
  if (theme) root.dataset.theme = theme;
  else delete root.dataset.theme;
  keep("theme", theme);
}

if (themeSwitch) setUpSwitch(themeSwitch, document.documentElement.dataset.theme || "", chooseTheme);

// Tabs that do not fit stay on one line, which scrolls to the current tab.

for (const tab of document.querySelectorAll(".tabs [aria-current]")) {
  const row = tab.closest("ul");
  row.scrollLeft = tab.offsetLeft - row.offsetLeft - (row.clientWidth - tab.offsetWidth) / 2;
}

// Scroll a focused tab into view, because browsers do not scroll to a tab that is partly visible.
document.addEventListener("focusin", ({ target }) => {
  if (target.closest(".tabs")) target.scrollIntoView({ block: "nearest", inline: "nearest" });
});

// Copy buttons are visible only with this script. Browsers provide the clipboard API only for HTTPS
// and localhost. For other pages, the script tries `execCommand`. If that fails, it selects the
// text for the user to copy.

function copyTheOldWay(text, button) {
  const field = document.createElement("textarea");
  field.value = text;
  field.readOnly = true;
  field.className = "visually-hidden";
  button.after(field);
  field.select();
  const isCopied = document.execCommand("copy");
  field.remove();
  button.focus();
  return isCopied;
}

async function write(text, button) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copyTheOldWay(text, button);
  }
}

function select(source) {
  const box = source.closest("details");
  if (box) box.open = true;
  const range = document.createRange();
  range.selectNodeContents(source);
  getSelection().removeAllRanges();
  getSelection().addRange(range);
}

async function copy(button) {
  const source = document.getElementById(button.dataset.copy);
  const words = button.querySelector("[data-copy-words]");
  const isCopied = await write(source.textContent, button);
  if (!isCopied) select(source);
  words.textContent = isCopied ? "Copied" : "Selected: press Ctrl+C";
  setTimeout(() => { words.textContent = "Copy"; }, isCopied ? 2000 : 8000);
}

function setUpCopying(button) {
  button.hidden = false;
  button.addEventListener("click", () => copy(button));
}

// Updates times such as "12:52 (3 min ago)" while a page is open. The format is the same as in
// web/pages/templating.py, in the time zone of the user's profile.

const UNITS = [[3600, "h"], [60, "min"], [1, "s"]];
const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const HALF_A_DAY = 12 * 3600;

// Remaining times are rounded up to a minute.
function distanceOf(seconds) {
  const length = Math.abs(seconds);
  if (length < 10) return seconds < -1 ? "in a moment" : "just now";
  if (seconds < 0) {
    if (length <= 60) return `in ${Math.ceil(length)} s`;
    const minutes = Math.ceil(length / 60);
    return ["in", minutes >= 60 && `${Math.floor(minutes / 60)} h`, minutes % 60 && `${minutes % 60} min`].filter(Boolean).join(" ");
  }
  const [size, word] = UNITS.find(([unit]) => length >= unit);
  return `${Math.floor(length / size)} ${word} ago`;
}

const numbers = new Intl.DateTimeFormat("en-GB", {
  timeZone: knownZone(document.documentElement.dataset.zone), hourCycle: "h23",
  year: "numeric", month: "numeric", day: "numeric", hour: "2-digit", minute: "2-digit", second: "2-digit",
});

// Returns the name of a time zone, or UTC if the browser does not support it.
function knownZone(name) {
  try {
    new Intl.DateTimeFormat("en-GB", { timeZone: name });
    return name;
  } catch {
    return "UTC";
  }
}

function partsOf(moment) {
  return Object.fromEntries(numbers.formatToParts(moment).map(({ type, value }) => [type, value]));
}

function short(moment, now, hasSeconds) {
  const [at, today] = [partsOf(moment), partsOf(now)];
  const isToday = ["year", "month", "day"].every((each) => at[each] === today[each]);
  const year = at.year === today.year ? "" : `${at.year} `;
  const words = `${isToday ? "" : `${Number(at.day)} ${MONTHS[at.month - 1]} ${year}`}${at.hour}:${at.minute}${hasSeconds ? `:${at.second}` : ""}`;
  const seconds = (now - moment) / 1000;
  return isToday || Math.abs(seconds) < HALF_A_DAY ? `${words} (${distanceOf(seconds)})` : words;
}

// The clock of the device may be wrong, so the script uses it only to measure the time since loading.
const madeAt = Date.parse(document.documentElement.dataset.now);
const loadedAt = Date.now();

// True if all times are exact. The switch in the footer changes this value. A tap makes a single
// time exact.
let allExact = kept("times") === "exact";

function wordsOf(time, now) {
  const isExact = allExact || "exact" in time.dataset;
  time.classList.toggle("is-exact", isExact);
  return isExact ? time.title : short(Date.parse(time.dateTime), now, time.dataset.short === "seconds");
}

const serverTime = () => (Number.isNaN(madeAt) ? loadedAt : madeAt) + Date.now() - loadedAt;

function refreshTimes() {
  if (document.hidden || Number.isNaN(madeAt)) return;
  const now = serverTime();
  for (const time of document.querySelectorAll("time[data-short]")) {
    const words = wordsOf(time, now);
    if (time.textContent !== words) time.textContent = words;
  }
}

const timesSwitch = document.querySelector("[data-times-switch]");
if (timesSwitch) {
  setUpSwitch(timesSwitch, allExact ? "exact" : "", (value) => {
    allExact = value === "exact";
    keep("times", value);
    refreshTimes();
  });
}

document.addEventListener("click", (event) => {
  const time = event.target.closest("time[title]");
  if (!time || event.target.closest("a, button, summary, label")) return;
  time.toggleAttribute("data-exact");
  refreshTimes();
});

if (allExact) refreshTimes();
setInterval(refreshTimes, 20000);
document.addEventListener("visibilitychange", refreshTimes);
// Parts that a script adds contain the times as the server rendered them.
new MutationObserver(refreshTimes).observe(document.getElementById("main"), { childList: true, subtree: true });

// A cookie sends the time zone of the browser to the server. New accounts receive this time zone,
// and pages use it for visitors who are not signed in.

const own = Intl.DateTimeFormat().resolvedOptions().timeZone;
if (own && !document.cookie.split("; ").includes(`time_zone=${own}`)) {
  const { pathname, protocol } = new URL(document.querySelector(".brand").href);
  const secure = protocol === "https:" ? "; Secure" : "";
  document.cookie = `time_zone=${own}; Path=${pathname}; Max-Age=31536000; SameSite=Lax${secure}`;
}

// Fields for a time zone have a button that enters the time zone of the browser.

for (const input of document.querySelectorAll("[data-own-zone]")) {
  if (!own || own === input.value) continue;
  const button = document.createElement("button");
  button.type = "button";
  button.className = "button small";
  button.textContent = `Use ${own} (time zone of this browser)`;
  button.addEventListener("click", () => {
    input.value = own;
    input.focus();
    button.remove();
  });
  input.after(button);
}

// Menus close on Escape, on a click outside, and when the focus leaves them. A click on the
// background of a menu moves the focus to an element around the menu, which does not close the
// menu.

function isElsewhere(target, box) {
  return !box.contains(target) && !target.contains(box);
}

function closeMenus(isLeft) {
  for (const menu of document.querySelectorAll("details.menu[open]")) if (isLeft(menu)) menu.open = false;
}
document.addEventListener("click", ({ target }) => closeMenus((menu) => !menu.contains(target)));
document.addEventListener("focusin", ({ target }) => closeMenus((menu) => isElsewhere(target, menu)));

function setUpMenu(menu) {
  menu.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !menu.open) return;
    menu.open = false;
    menu.querySelector("summary").focus();
  });
}

// Messages about the result of a change can be dismissed.

function setUpDismissal(button) {
  button.hidden = false;
  button.addEventListener("click", () => {
    const row = button.closest(".flashes");
    button.closest(".notice").remove();
    if (!row.children.length) row.remove();
    document.getElementById("main").focus({ preventScroll: true });
  });
}

// Confirmations close without a reload, and return the focus to the button that opened them.

function closeQuestion(event) {
  const question = event.target.closest("details.confirm[open]");
  if (!question) return;
  event.preventDefault();
  question.open = false;
  question.querySelector("summary").focus();
}
document.addEventListener("click", (event) => {
  if (event.target.closest("[data-cancel]")) closeQuestion(event);
});
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") closeQuestion(event);
});

// Close a confirmation that covers other elements when the focus leaves it.
document.addEventListener("focusin", ({ target }) => {
  for (const question of document.querySelectorAll("details.confirm[open]")) {
    const { position } = getComputedStyle(question.querySelector(".confirm-panel"));
    if (position === "absolute" && isElsewhere(target, question)) question.open = false;
  }
});

// A form that was submitted cannot be submitted again, so that a double click makes one change.

document.addEventListener("submit", (event) => {
  const form = event.target;
  // A form that downloads a file does not leave the page, and can be submitted again.
  if (form.method !== "post" || "again" in form.dataset) return;
  if (form.dataset.sent) event.preventDefault();
  form.dataset.sent = "yes";
});
window.addEventListener("pageshow", () => {
  for (const form of document.querySelectorAll("form[data-sent]")) delete form.dataset.sent;
});

// On the page after a change, buttons ignore taps for a moment (base.css). If the position of the
// last tap is known, only buttons, links and menus near this position ignore taps.

const NEAR = 48;

function distance(element, x, y) {
  const box = element.getBoundingClientRect();
  return Math.max(box.left - x, x - box.right, box.top - y, y - box.bottom);
}

function guardNearLastTap() {
  const [x, y] = (sessionStorage.getItem("tap") || "").split(" ").map(Number);
  if (Number.isNaN(y ?? NaN)) return;
  for (const element of document.querySelectorAll("main :is(form button, a, summary)")) {
    if (distance(element, x, y) <= NEAR) element.classList.add("near-tap");
    else if (element.matches("button")) element.classList.add("settled");
  }
}

try {
  if (document.body.classList.contains("settling")) guardNearLastTap();
  document.addEventListener("click", ({ clientX, clientY, target }) => {
    if (target.closest("form button")) sessionStorage.setItem("tap", `${clientX} ${clientY}`);
  }, true);
} catch {
  // Without session storage, all buttons ignore taps.
}

// Counts down the seconds in which a change can be undone. Afterwards, the page is reloaded unless the
// user is typing.

function setUpCountdown(part) {
  let left = Number(part.dataset.countdown);
  const seconds = part.querySelector("[data-seconds]");
  const timer = setInterval(() => {
    left -= 1;
    seconds.textContent = String(Math.max(left, 0));
    if (left > -2) return;
    clearInterval(timer);
    if (!part.isConnected) return;
    if (!document.activeElement?.matches("input, textarea, select")) location.reload();
  }, 1000);
}

// All `details` elements are open in print. Browsers that support ::details-content need no script
// (print.css).

if (!CSS.supports("selector(::details-content)")) {
  const opened = [];
  window.addEventListener("beforeprint", () => {
    for (const each of document.querySelectorAll("main details:not(.confirm, .menu, .secret-box, [open])")) {
      each.open = true;
      opened.push(each);
    }
  });
  window.addEventListener("afterprint", () => {
    for (const each of opened.splice(0)) each.open = false;
  });
}

// Sets up the elements of this page, and of parts that live.js adds later.

function setUpParts(root) {
  const setUp = (selector, each) => {
    for (const part of [root, ...root.querySelectorAll(selector)]) if (part.matches?.(selector)) each(part);
  };
  setUp("[data-copy]", setUpCopying);
  setUp("details.menu", setUpMenu);
  setUp("[data-dismiss]", setUpDismissal);
  setUp("[data-countdown]", setUpCountdown);
}
setUpParts(document);
