// The search dialog. The link in the header, Ctrl+K and Cmd+K open the dialog. The server renders
// the results.
"use strict";

(() => {
  const dialog = document.getElementById("palette");
  const field = document.getElementById("palette-q");
  const list = document.getElementById("palette-hits");
  const found = dialog.querySelector("[data-found]");
  // Time in milliseconds between the last key and the request.
  const PAUSE = 150;
  let timer = 0;
  let asked = null;

  const options = () => [...list.querySelectorAll("[role=option]")];
  const active = () => list.querySelector("[aria-selected=true]");

  function activate(option) {
    active()?.setAttribute("aria-selected", "false");
    option?.setAttribute("aria-selected", "true");
    if (option) field.setAttribute("aria-activedescendant", option.id);
    else field.removeAttribute("aria-activedescendant");
    option?.scrollIntoView({ block: "nearest" });
  }

  function show(html) {
    list.replaceChildren(...new DOMParser().parseFromString(html, "text/html").body.childNodes);
    const count = options().length;
    list.hidden = !count;
    field.setAttribute("aria-expanded", String(Boolean(count)));
    found.textContent = count ? `${count} result${count === 1 ? "" : "s"}` : "No results";
    activate(field.value.trim() ? options()[0] : null);
  }

  async function ask() {
    asked?.abort();
    asked = new AbortController();
    const address = new URL(field.form.action);
    address.search = new URLSearchParams({ q: field.value, _part: "list" });
    try {
      const answer = await fetch(address, { credentials: "same-origin", signal: asked.signal });
      // A redirect leads to the sign-in page. Submitting the form leads there, too.
      if (answer.ok && !answer.redirected) show(await answer.text());
      else found.textContent = "Press Enter to search.";
    } catch (error) {
      if (error.name !== "AbortError") found.textContent = "The server cannot be reached.";
    }
  }

  function open() {
    if (dialog.open) return;
    dialog.showModal();
    field.select();
    ask();
  }

  function move(step) {
    const all = options();
    if (!all.length) return;
    const at = all.indexOf(active());
    const next = at < 0 && step < 0 ? all.length - 1 : (at + step + all.length) % all.length;
    activate(all[next]);
  }

  document.addEventListener("keydown", (event) => {
    if (event.key.toLowerCase() !== "k" || !(event.ctrlKey || event.metaKey) || event.altKey || event.shiftKey) return;
    event.preventDefault();
    open();
  });
  document.addEventListener("click", (event) => {
    if (!event.target.closest("[data-search]") || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    open();
  });

  field.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(ask, PAUSE);
  });
  field.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    move(step);
  });
  // Enter opens the selected result. Typing clears the selection, so outdated results are not opened.
  field.form.addEventListener("submit", (event) => {
    const option = active();
    if (!option) return;
    event.preventDefault();
    option.click();
  });
  field.addEventListener("input", () => activate(null));
  dialog.addEventListener("click", ({ target }) => {
    if (target === dialog || target.closest("[data-close]")) dialog.close();
  });
})();
