// Refreshes pages automatically. The script regularly requests the page's mark (web/pages/live_pages.py).
// When the mark has changed, the script requests the page and replaces the parts that differ. It
// does not replace parts that contain the focus, a selection, an opened `details` element or an
// edited form. Those changes wait until the user leaves the part.
"use strict";

// Functions that other scripts use. alert_list.js replaces `update`.
const live = {};

{
  const CHECK_EVERY = 20000;
  // A tab in the background only updates the number of open alerts in its title.
  const CHECK_HIDDEN_EVERY = 60000;
  const LONGEST_PAUSE = 300000;
  // An event that is due may happen a moment later.
  const SOON = 3000;

  const page = document.getElementById("main");
  const openAtFirst = new WeakSet(document.querySelectorAll("details[open]"));
  // Header that distinguishes requests by this script from requests by a user
  // (web/pages/double_submit_protection.py).
  const AS_UPDATE = { credentials: "same-origin", headers: { "Gatebell-Update": "1" } };

  // Returns the HTML of an element without differences that do not matter to readers: relative times
  // and opened elements (page.js), form tokens, and attributes that scripts set.
  live.getComparableHtml = (node) => {
    const copy = node.cloneNode(true);
    const drop = (selector, ...names) => {
      for (const each of [copy, ...copy.querySelectorAll(selector)]) {
        if (each.matches(selector)) for (const name of names) each.removeAttribute(name);
      }
    };
    const empty = (selector) => {
      for (const each of [copy, ...copy.querySelectorAll(selector)]) {
        if (each.matches(selector)) each.textContent = "";
      }
    };
    empty("time, [data-seconds], [data-copy-words]");
    drop("time", "class", "data-exact");
    drop("[data-countdown]", "data-countdown");
    drop("[name=csrf_token]", "value");
    drop("[data-alert-row]", "data-current", "data-gone");
    drop("[data-copy], [data-dismiss]", "hidden");
    drop("form", "data-sent");
    drop("details", "open");
    for (const each of copy.querySelectorAll(".settled, .near-tap")) each.classList.remove("settled", "near-tap");
    drop("[class='']", "class");
    return copy.outerHTML;
  };

  function hasEntry(form) {
    return [...form.querySelectorAll("input, textarea, select")].some((field) => {
      if (field.matches("[type=hidden]")) return false;
      if (field.matches("select")) {
        const options = [...field.options];
        return options.some((each) => each.selected !== each.defaultSelected) &&
          (options.some((each) => each.defaultSelected) || field.selectedIndex > 0);
      }
      return field.value !== field.defaultValue || field.checked !== field.defaultChecked;
    });
  }

  const isOpened = (box) => box.matches("details[open]") && !openAtFirst.has(box);

  function isInUse(node) {
    const focus = document.activeElement;
    return (focus !== page && focus !== document.body && node.contains(focus)) ||
      [node, ...node.querySelectorAll("details[open]")].some(isOpened) ||
      (!getSelection().isCollapsed && getSelection().containsNode(node, true)) || hasEntry(node);
  }

  const changed = new Set();
  let hasChanged = false;

  function recordChange(node) {
    const part = node.closest("section[aria-labelledby], [aria-label]");
    const heading = part?.getAttribute("aria-label") ??
      document.getElementById(part?.getAttribute("aria-labelledby"))?.textContent;
    if (heading) changed.add(heading.trim());
    hasChanged = true;
  }

  // Makes new buttons ignore taps and keys (keys.js) for a moment. A user may have aimed at the button
  // that a new button replaces.
  function ignoreTaps() {
    document.body.classList.remove("settling");
    void document.body.offsetWidth;
    document.body.classList.add("settling");
    document.dispatchEvent(new Event("settle"));
  }

  function importPart(fresh) {
    const made = document.importNode(fresh, true);
    for (const box of [made, ...made.querySelectorAll("details[open]")]) openAtFirst.add(box);
    setUpParts(made);
    const posting = "form[method=post]";
    if (made.matches(`${posting}, button, input`) || made.querySelector(posting)) ignoreTaps();
    return made;
  }

  // Returns the HTML of an element with its own text, but without its child elements.
  function getOwnHtml(node) {
    const copy = node.cloneNode(false);
    for (const each of node.childNodes) if (each.nodeType === Node.TEXT_NODE) copy.append(each.data.trim());
    return live.getComparableHtml(copy);
  }

  const key = (node) => node.id || node.getAttribute("aria-labelledby") || node.dataset.alertRow ||
    `${node.localName}.${node.className}`;

  // The next three functions return true if they replaced all parts that differ.

  function merge(old, fresh) {
    if (live.getComparableHtml(old) === live.getComparableHtml(fresh)) return true;
    if (isOpened(old) || (old.matches("form") && hasEntry(old))) return false;
    const isWhole = !old.children.length || !fresh.children.length || old.matches("svg, li, tr");
    if (!isWhole && getOwnHtml(old) === getOwnHtml(fresh)) return mergeChildren(old, fresh);
    if (isInUse(old)) return false;
    const made = importPart(fresh);
    old.replaceWith(made);
    recordChange(made);
    return true;
  }

  function mergeChildren(old, fresh) {
    const now = [...old.children].filter((each) => !each.matches(".flashes[role=status], [data-live]"));
    const then = [...fresh.children];
    const same = (a, b) => a && b && live.getComparableHtml(a) === live.getComparableHtml(b);
    while (same(now[0], then[0])) { now.shift(); then.shift(); }
    let after = null;
    while (same(now.at(-1), then.at(-1))) { after = now.pop(); then.pop(); }
    // An update can reorder rows. If the user is interacting with a row, no rows are changed.
    if (now.some((each) => each.matches("li, tr") && isInUse(each))) return false;
    return place(old, now, then, after);
  }

  function place(parent, now, then, after) {
    let isDone = true;
    for (const fresh of then) {
      const found = now.findIndex((each) => key(each) === key(fresh));
      for (const gone of now.splice(0, Math.max(found, 0))) isDone = removePart(gone) && isDone;
      if (found >= 0) {
        isDone = merge(now.shift(), fresh) && isDone;
      } else {
        const made = importPart(fresh);
        parent.insertBefore(made, now[0] ?? after);
        recordChange(made);
      }
    }
    for (const gone of now) isDone = removePart(gone) && isDone;
    return isDone;
  }

  function removePart(gone) {
    if (isInUse(gone)) return false;
    recordChange(gone);
    gone.remove();
    return true;
  }

  // Shows the number of open alerts at the beginning of the title. The response that contains the
  // mark also contains the number.
  function showCount(count) {
    const plain = document.title.replace(/^\([\d,]+\+?\) /, "");
    const title = count === null ? plain : `(${count}) ${plain}`;
    if (document.title !== title) document.title = title;
  }

  // Updates

  // Returns the page at a URL. Throws an error if the response is an error or a redirect.
  live.fetchPage = async (address) => {
    address.hash = "";
    const answer = await fetch(address, AS_UPDATE);
    if (!answer.ok || answer.redirected) throw new Error(`The response is ${answer.status}.`);
    return new DOMParser().parseFromString(await answer.text(), "text/html");
  };

  const news = document.createElement("p");
  let waiting = null;
  let readAt = serverTime();
  let mark = page.dataset.mark;
  let pause = CHECK_EVERY;
  let failures = 0;
  let timer = 0;
  let isRequesting = false;

  function applyUpdate(fresh) {
    changed.clear();
    hasChanged = false;
    waiting = mergeChildren(page, fresh) ? null : fresh;
    if (!hasChanged) return;
    const parts = [...changed].join(", ");
    news.textContent = parts ? `This page was updated: ${parts}.` : "This page was updated.";
  }

  function applyWaitingUpdate() {
    if (waiting) applyUpdate(waiting);
  }

  live.update = async () => {
    const main = (await live.fetchPage(new URL(location.href))).getElementById("main");
    mark = main.dataset.mark;
    applyUpdate(main);
  };

  function stop(words) {
    clearTimeout(timer);
    mark = undefined;
    const row = document.createElement("div");
    row.className = "flashes";
    row.dataset.live = "";
    row.setAttribute("role", "status");
    const box = document.createElement("div");
    box.className = "notice warn";
    const text = document.createElement("p");
    const link = document.createElement("a");
    link.href = location.href;
    link.textContent = "Reload";
    text.append(`${words} `, link);
    box.append(text);
    page.prepend(row);
    // Screen readers announce content that is added to an existing status region.
    setTimeout(() => row.append(box));
  }

  // Returns the times on the page that were in the future when the page was loaded.
  function times() {
    return [...page.querySelectorAll("time[datetime], [data-refresh-at]")]
      .map((each) => Date.parse(each.dataset.refreshAt ?? each.dateTime))
      .filter((each) => each > readAt);
  }

  async function read(answer) {
    const found = await answer.json();
    showCount(found.open);
    const isDue = times().some((each) => each <= serverTime());
    if (isDue) pause = SOON;
    else pause = Math.min(CHECK_EVERY, pause * 2);
    if (document.hidden || (found.mark === mark && !isDue)) return;
    const before = serverTime();
    mark = found.mark;
    try {
      await live.update();
      readAt = before;
    } catch (error) {
      mark = "";
      throw error;
    }
  }

  async function check() {
    if (isRequesting || mark === undefined) return;
    isRequesting = true;
    const address = new URL(location.href);
    address.searchParams.set("_part", "mark");
    address.hash = "";
    try {
      const answer = await fetch(address, AS_UPDATE);
      if (answer.redirected && answer.url.includes("/users/sign_in")) stop("You were signed out.");
      else if (answer.redirected || [403, 404, 410].includes(answer.status)) {
        stop("This page is no longer available.");
      } else if (answer.ok) {
        await read(answer);
        failures = 0;
      } else failures += 1;
    } catch {
      failures += 1;
    } finally {
      isRequesting = false;
    }
    scheduleCheck();
  }

  function scheduleCheck() {
    clearTimeout(timer);
    if (mark === undefined) return;
    const due = Math.min(...times()) + 1000 - serverTime();
    const usual = document.hidden ? CHECK_HIDDEN_EVERY : Math.min(pause, Math.max(due, SOON / 2));
    const wait = failures ? Math.min(LONGEST_PAUSE, CHECK_EVERY * 2 ** failures) : usual;
    // A random delay spreads the requests of pages that were opened at the same time.
    timer = setTimeout(() => { applyWaitingUpdate(); check(); }, wait * (0.9 + 0.2 * Math.random()));
  }

  if (mark !== undefined) {
    news.className = "visually-hidden";
    news.dataset.liveNews = "";
    news.setAttribute("role", "status");
    document.body.append(news);
    document.addEventListener("visibilitychange", () => {
      if (document.hidden) scheduleCheck();
      else check();
    });
    for (const kind of ["focusout", "toggle", "selectionchange"]) {
      document.addEventListener(kind, () => setTimeout(applyWaitingUpdate), true);
    }
    scheduleCheck();
  }

  // Parts with `data-watch` are requested again until they contain no element with `data-waiting`.

  const FIRST_PAUSE = 3000;
  const LONGEST_WATCH_PAUSE = 30000;
  // Time in milliseconds after which the requests end. The user can reload the page.
  const PATIENCE = 3600000;

  function showWatchTexts(part) {
    for (const words of part.querySelectorAll("[data-watching]")) words.hidden = false;
    for (const words of part.querySelectorAll("[data-unwatched]")) words.hidden = true;
  }

  function watch(part) {
    const words = part.nextElementSibling;
    const began = Date.now();
    let wait = FIRST_PAUSE;
    let next;

    function replacePart(text) {
      const fresh = part.cloneNode(false);
      fresh.innerHTML = text;
      showWatchTexts(fresh);
      // A part that contains the focus is not replaced.
      if (live.getComparableHtml(fresh) === live.getComparableHtml(part) || part.contains(document.activeElement)) return;
      part.replaceChildren(...fresh.childNodes);
      setUpParts(part);
      words.textContent = part.querySelector("strong")?.textContent ?? "";
      wait = FIRST_PAUSE;
    }

    async function requestPart() {
      clearTimeout(next);
      if (!part.querySelector("[data-waiting]") || Date.now() - began > PATIENCE) return;
      if (!document.hidden) {
        try {
          const answer = await fetch(part.dataset.watch, { credentials: "same-origin" });
          // A redirect leads to the sign-in page.
          if (answer.ok && !answer.redirected) replacePart(await answer.text());
        } catch {
          // The server may be unavailable for a moment. Another request follows.
        }
      }
      wait = Math.min(LONGEST_WATCH_PAUSE, wait * 1.05);
      next = setTimeout(requestPart, wait);
    }

    showWatchTexts(part);
    next = setTimeout(requestPart, wait);
    document.addEventListener("visibilitychange", () => { if (!document.hidden) requestPart(); });
  }

  for (const part of document.querySelectorAll("[data-watch]")) watch(part);
}
