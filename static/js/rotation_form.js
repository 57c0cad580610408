// The form of a rotation: updates the preview of the turns while the user edits the rotation.
"use strict";

const form = document.querySelector("form[data-rotation]");
const preview = form?.querySelector("[data-rotation-preview]");
let latest = 0;
let delay;

async function refresh() {
  const number = ++latest;
  const entered = new FormData(form);
  entered.set("do", "preview");
  try {
    const answer = await fetch(location.href, { method: "POST", body: entered });
    if (!answer.ok && answer.status !== 422) return;
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const found = page.querySelector("[data-rotation-preview]");
    // A later change has its own request, so this response is outdated.
    if (number === latest && found) preview.replaceChildren(...found.childNodes);
  } catch {
    // The "Show preview" button also updates the preview.
  }
}

if (preview) {
  form.addEventListener("input", () => {
    clearTimeout(delay);
    delay = setTimeout(refresh, 300);
  });
}
