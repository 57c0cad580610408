// Keyboard shortcuts for lists, alerts and incidents, and the dialog that lists the shortcuts.
// Pressing a key clicks the element whose `data-key` attribute contains the key. Page scripts can
// add other keys. Shortcuts are ignored while the user types in a text field.
"use strict";

const pageKeys = (() => {
  const help = document.getElementById("shortcuts");
  // Time in milliseconds during which buttons ignore taps after an update (base.css).
  const SETTLES_FOR = 2500;
  let settledAt = -SETTLES_FOR;
  const own = { "?": () => help.showModal() };

  function isTyping(target) {
    const field = target.closest("input, textarea, select, [contenteditable]");
    return document.querySelector("dialog[open]") || (field && field.type !== "checkbox");
  }

  function press(target) {
    const box = target.matches("summary") && target.parentElement;
    if (!box) {
      const isNew = performance.now() - settledAt < SETTLES_FOR;
      // The user may have pressed the key for a button that an update has just replaced.
      if (!isNew || !target.matches("form[method=post] button")) target.click();
      return;
    }
    box.open = !box.open;
    const first = box.open && box.querySelector(":is(a, button, input, select, textarea):not([type=hidden])");
    (first || target).focus();
  }

  document.addEventListener("keydown", (event) => {
    if (isTyping(event.target) || event.ctrlKey || event.metaKey || event.altKey) return;
    const act = own[event.key];
    const target = act ? null : document.querySelector(`[data-key="${CSS.escape(event.key)}"]`);
    if (!act && !target || event.repeat && !act?.repeats) return;
    event.preventDefault();
    if (act) act();
    else press(target);
  });

  document.addEventListener("settle", () => { settledAt = performance.now(); });
  document.addEventListener("click", ({ target }) => {
    if (target.closest("[data-shortcuts]")) help.showModal();
  });

  return { add: (more) => Object.assign(own, more), isHelpOpen: () => help.open };
})();
