// The mapping editor: previews the alert that the sample produces after each change, and disables
// the mapping while the sample has unread changes.
"use strict";

for (const form of document.querySelectorAll("form[data-mapping]")) {
  const preview = form.querySelector("[data-preview]");
  const sample = form.querySelector("textarea[name=sample]");
  const changed = form.querySelector("[data-sample-changed]");
  const table = form.querySelector("[data-mapping-table]");
  const read = sample.value;
  let asked = 0;

  async function refresh() {
    const question = ++asked;
    try {
      const answer = await fetch(form.dataset.mapping, { method: "POST", body: new FormData(form) });
      const text = await answer.text();
      // A later change has its own request, so this response is outdated.
      if (question === asked && (answer.ok || answer.status === 422)) preview.innerHTML = text;
    } catch {
      // The "Try it" and "Save" buttons also show the alert that the sample produces.
    }
  }

  if (!table) continue;
  form.addEventListener("change", refresh);
  sample.addEventListener("input", () => {
    const isChanged = sample.value !== read;
    changed.hidden = !isChanged;
    const controls = [...table.querySelectorAll("select, input, button"), ...form.querySelectorAll("[data-needs-sample]")];
    for (const control of controls) control.disabled = isChanged;
  });
}
