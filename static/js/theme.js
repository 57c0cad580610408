// Runs before anything is painted, so that a chosen theme does not flash. Not deferred for that.
"use strict";

try {
  const chosen = localStorage.getItem("theme");
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
} catch {
  // Storage is switched off: the system's scheme stays.
}
