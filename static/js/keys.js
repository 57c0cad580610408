// Keys of lists, alerts and incidents, and the dialog that explains them. A letter presses what is
// marked with it (`data-key`); a script of the page may add others. In fields, keys only type.
"use strict";

const pageKeys = (() => {
  const help = document.getElementById("shortcuts");
  // As long as buttons ignore taps (base.css).
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
      // A letter that was meant for the page before its update may press something else now.
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
