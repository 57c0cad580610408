// Searching settings: the list narrows with every letter. What counts is what the server looks at
// when the form is sent (web/admin/settings.py).
"use strict";

const field = document.querySelector("[data-settings-search]");
const told = document.querySelector("[data-settings-found]");
const sections = [...document.querySelectorAll("[data-settings]")];

function show(words) {
  let count = 0;
  for (const section of sections) {
    let inSection = 0;
    for (const heading of section.querySelectorAll("[data-setting]")) {
      const row = heading.closest("tr");
      const text = [section.dataset.settings, heading.textContent, heading.dataset.setting].join(" ").toLowerCase();
      row.hidden = !words.every((word) => text.includes(word));
      if (!row.hidden) inSection += 1;
    }
    section.hidden = inSection === 0;
    const jump = document.querySelector(`.jumps a[href="#${section.getAttribute("aria-labelledby")}"]`);
    if (jump) jump.closest("li").hidden = section.hidden;
    count += inSection;
  }
  told.textContent = words.length ? `${count} matching setting${count === 1 ? "" : "s"}` : "";
}

// A list that the server has narrowed already grows by another search only.
if (sections.length && !field.value) {
  field.addEventListener("input", () => show(field.value.toLowerCase().split(/\s+/).filter(Boolean)));
}
