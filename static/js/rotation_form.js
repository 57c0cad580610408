// The form of a rotation: shows the turns of the entered rotation while it is edited.
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
    // A later change has a request of its own.
    if (number === latest && found) preview.replaceChildren(...found.childNodes);
  } catch {
    // The button still shows the preview.
  }
}

if (preview) {
  form.addEventListener("input", () => {
    clearTimeout(delay);
    delay = setTimeout(refresh, 300);
  });
}
