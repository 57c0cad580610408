// Filters the items of a page while the user types. The server searches the same text when the form
// is submitted. If only one item matches and it has a link, Enter opens the item.
"use strict";

const field = document.querySelector("[data-page-search]");
const resultCount = document.querySelector("[data-search-found]");
const groups = [...document.querySelectorAll("[data-search-group]")];

function rowOf(item) {
  return item.closest("tr, li");
}

function show(words) {
  let count = 0;
  for (const group of groups) {
    let inGroup = 0;
    for (const item of group.querySelectorAll("[data-search-item]")) {
      const text = [group.dataset.searchGroup, item.textContent, item.dataset.searchItem].join(" ").toLowerCase();
      rowOf(item).hidden = !words.every((word) => text.includes(word));
      if (!rowOf(item).hidden) inGroup += 1;
    }
    group.hidden = inGroup === 0;
    const jump = document.querySelector(`.jumps a[href="#${group.getAttribute("aria-labelledby")}"]`);
    if (jump) jump.closest("li").hidden = group.hidden;
    count += inGroup;
  }
  resultCount.textContent = words.length ? `${count} matching ${field.dataset.pageSearch}${count === 1 ? "" : "s"}` : "";
}

// If the server has already filtered the list, the script cannot show the items that are missing.
if (groups.length && !field.value) {
  field.addEventListener("input", () => show(field.value.toLowerCase().split(/\s+/).filter(Boolean)));
  field.form.addEventListener("submit", (event) => {
    const left = [...document.querySelectorAll("[data-search-item]")].filter((item) => !rowOf(item).hidden);
    const link = left.length === 1 && rowOf(left[0]).querySelector("a");
    if (!link) return;
    event.preventDefault();
    location.assign(link.href);
  });
}
