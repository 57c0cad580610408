// Requests the progress of a bulk change to alerts every second until the change is finished.
"use strict";

const POLL_INTERVAL = 1000;

async function poll() {
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
    // The server may be unavailable for a moment. The next request follows in a second.
  }
  setTimeout(poll, POLL_INTERVAL);
}

setTimeout(poll, POLL_INTERVAL);
