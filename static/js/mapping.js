// The mapping editor: shows at once what the sample would become, and that a changed sample has to
// be read again.
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
      // Whatever was chosen since then has a preview of its own under way.
      if (question === asked && (answer.ok || answer.status === 422)) preview.innerHTML = text;
    } catch {
      // The page still works: "Try it" and "Save" say what would become of the sample.
    }
  }

  if (!table) continue;
  table.addEventListener("change", refresh);
  form.querySelector("[data-other-messages]").addEventListener("change", refresh);
  sample.addEventListener("input", () => {
    const isChanged = sample.value !== read;
    changed.hidden = !isChanged;
    const controls = [...table.querySelectorAll("select, input, button"), ...form.querySelectorAll("[data-needs-sample]")];
    for (const control of controls) control.disabled = isChanged;
  });
}
