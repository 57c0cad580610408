// What every page may have: switches of theme and times, copy buttons, menus that close.
"use strict";

// Theme: what the user chose, or nothing, and then the system decides.

const themeSwitch = document.querySelector("[data-theme-switch]");

function keep(name, value) {
  try {
    if (value) localStorage.setItem(name, value);
    else localStorage.removeItem(name);
  } catch {
    // Not remembered, but shown.
  }
}

function kept(name) {
  try {
    return localStorage.getItem(name) || "";
  } catch {
    return "";
  }
}

// Buttons of which one is pressed; `choose` gets the value of a button.
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

// Tabs that do not fit lie in one line: the present one is moved into view.

for (const tab of document.querySelectorAll(".tabs [aria-current]")) {
  const row = tab.closest("ul");
  row.scrollLeft = tab.offsetLeft - row.offsetLeft - (row.clientWidth - tab.offsetWidth) / 2;
}

// The focus may be on a tab of which the edge alone is in view: browsers leave it there.
document.addEventListener("focusin", ({ target }) => {
  if (target.closest(".tabs")) target.scrollIntoView({ block: "nearest", inline: "nearest" });
});

// Copy: buttons appear with this script. Browsers know the clipboard only under https and on this
// computer; elsewhere the older way is tried, and what cannot be copied is selected for the keys.

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

// Times: "12:52 (3 min ago)" stays true on a page that stays open. The words are those of the server
// (web/pages/templating.py), in the time zone of the profile.

const UNITS = [[3600, "h"], [60, "min"], [1, "s"]];
const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const HALF_A_DAY = 12 * 3600;

// Remaining times are rounded up, in the largest unit that fits twice.
function distanceOf(seconds) {
  const length = Math.abs(seconds);
  if (length < 10) return seconds < -1 ? "in a moment" : "just now";
  if (seconds < 0) {
    if (length <= 60) return `in ${Math.ceil(length)} s`;
    const whole = Math.ceil(length / 60) * 60;
    const [size, word] = UNITS.find(([unit]) => whole >= 2 * unit);
    return `in ${Math.ceil(whole / size)} ${word}`;
  }
  const [size, word] = UNITS.find(([unit]) => length >= unit);
  return `${Math.floor(length / size)} ${word} ago`;
}

const numbers = new Intl.DateTimeFormat("en-GB", {
  timeZone: knownZone(document.documentElement.dataset.zone), hourCycle: "h23",
  year: "numeric", month: "numeric", day: "numeric", hour: "2-digit", minute: "2-digit", second: "2-digit",
});

// A browser may not know a new name of a zone.
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

// The visitor's clock may be wrong: only what it says since the page was made counts.
const madeAt = Date.parse(document.documentElement.dataset.now);
const loadedAt = Date.now();

// Exact times instead: all of them by the switch in the footer, a single one by a tap.
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
// Rows that a script puts in place are as the server wrote them.
new MutationObserver(refreshTimes).observe(document.getElementById("main"), { childList: true, subtree: true });

// The server learns the time zone of the browser: a new account starts with it, and pages without
// a sign-in use it.

const own = Intl.DateTimeFormat().resolvedOptions().timeZone;
if (own && !document.cookie.split("; ").includes(`time_zone=${own}`)) {
  const { pathname, protocol } = new URL(document.querySelector(".brand").href);
  const secure = protocol === "https:" ? "; Secure" : "";
  document.cookie = `time_zone=${own}; Path=${pathname}; Max-Age=31536000; SameSite=Lax${secure}`;
}

// Where somebody chooses a time zone, that of the browser is offered.

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

// Menus close on Escape and when the focus or the pointer goes elsewhere. A click on the ground of
// a menu gives the focus to what is around it: that is no elsewhere.

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

// What a change did is read, and then in the way.

function setUpDismissal(button) {
  button.hidden = false;
  button.addEventListener("click", () => {
    const row = button.closest(".flashes");
    button.closest(".notice").remove();
    if (!row.children.length) row.remove();
    document.getElementById("main").focus({ preventScroll: true });
  });
}

// Questions close without a reload, and the focus returns to the button that opened them.

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

// A question that lies over other things would hide where the focus is.
document.addEventListener("focusin", ({ target }) => {
  for (const question of document.querySelectorAll("details.confirm[open]")) {
    const { position } = getComputedStyle(question.querySelector(".confirm-panel"));
    if (position === "absolute" && isElsewhere(target, question)) question.open = false;
  }
});

// A second click while the first one is under way would do things twice.

document.addEventListener("submit", (event) => {
  const form = event.target;
  // What only downloads a file leaves the page as it is, and may be asked for again.
  if (form.method !== "post" || "again" in form.dataset) return;
  if (form.dataset.sent) event.preventDefault();
  form.dataset.sent = "yes";
});
window.addEventListener("pageshow", () => {
  for (const form of document.querySelectorAll("form[data-sent]")) delete form.dataset.sent;
});

// On a page that follows a change, buttons ignore taps for a moment (base.css). Where the last tap is
// known, only buttons near it do.

const NEAR = 48;

function distance(button, x, y) {
  const box = button.getBoundingClientRect();
  return Math.max(box.left - x, x - box.right, box.top - y, y - box.bottom);
}

function freeDistantButtons() {
  const [x, y] = (sessionStorage.getItem("tap") || "").split(" ").map(Number);
  if (Number.isNaN(y ?? NaN)) return;
  for (const button of document.querySelectorAll("main form button")) {
    if (distance(button, x, y) > NEAR) button.classList.add("settled");
  }
}

try {
  if (document.body.classList.contains("settling")) freeDistantButtons();
  document.addEventListener("click", ({ clientX, clientY, target }) => {
    if (target.closest("form button")) sessionStorage.setItem("tap", `${clientX} ${clientY}`);
  }, true);
} catch {
  // Without a storage, all buttons wait.
}

// What happens in a few seconds, unless somebody undoes it. Afterwards the page is loaded again,
// except while somebody is typing.

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

// On paper everything is open; browsers that know ::details-content do it without a script (print.css).

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

// Parts of this page, and of those that a script puts in place later (live.js).

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
