// Sets the chosen theme before the first paint, so that the page does not flash. The script is not
// deferred for this reason.
"use strict";

try {
  const chosen = localStorage.getItem("theme");
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
} catch {
  // Without storage, the page has the theme of the system.
}
