// What somebody waits for on this page: asked for again until nothing in it says "waiting".
"use strict";

const FIRST_PAUSE = 3000;
const LONGEST_PAUSE = 30000;
// After it the page is left to whoever reloads it.
const PATIENCE = 3600000;

// Times go by on their own (page.js); they are no difference.
function gist(part) {
  const copy = part.cloneNode(true);
  for (const time of copy.querySelectorAll("time")) time.textContent = "";
  return copy.innerHTML;
}

function show(part) {
  for (const words of part.querySelectorAll("[data-watching]")) words.hidden = false;
  for (const words of part.querySelectorAll("[data-unwatched]")) words.hidden = true;
}

function watch(part) {
  const news = part.nextElementSibling;
  const began = Date.now();
  let pause = FIRST_PAUSE;
  let timer;

  function put(text) {
    const fresh = part.cloneNode(false);
    fresh.innerHTML = text;
    show(fresh);
    // Nothing moves under somebody who is in it.
    if (gist(fresh) === gist(part) || part.contains(document.activeElement)) return;
    part.replaceChildren(...fresh.childNodes);
    news.textContent = part.querySelector("strong")?.textContent ?? "";
    pause = FIRST_PAUSE;
  }

  async function ask() {
    clearTimeout(timer);
    if (!part.querySelector("[data-waiting]") || Date.now() - began > PATIENCE) return;
    if (!document.hidden) {
      try {
        const answer = await fetch(part.dataset.watch, { credentials: "same-origin" });
        // A redirect leads to the sign-in page.
        if (answer.ok && !answer.redirected) put(await answer.text());
      } catch {
        // Away for a moment; the next look will tell.
      }
    }
    pause = Math.min(LONGEST_PAUSE, pause * 1.05);
    timer = setTimeout(ask, pause);
  }

  show(part);
  timer = setTimeout(ask, pause);
  document.addEventListener("visibilitychange", () => { if (!document.hidden) ask(); });
}

for (const part of document.querySelectorAll("[data-watch]")) watch(part);
