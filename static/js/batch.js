// How far a change of many alerts is: asked for every second, until it is finished.
"use strict";

const LOOK_EVERY = 1000;

async function look() {
  const now = document.getElementById("batch");
  if (!["running", "undoing"].includes(now.dataset.state)) return;
  try {
    const answer = await fetch(location.href, { credentials: "same-origin" });
    if (answer.ok && !answer.redirected) {
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      const isFocused = now.contains(document.activeElement);
      now.replaceWith(page.getElementById("batch"));
      document.title = page.title;
      if (isFocused) document.getElementById("main").focus({ preventScroll: true });
    }
  } catch {
    // Away for a moment; the next look will tell.
  }
  setTimeout(look, LOOK_EVERY);
}

setTimeout(look, LOOK_EVERY);
