// The editor for test alerts: validates the JSON while the user types, and formats it.
"use strict";

for (const editor of document.querySelectorAll("textarea[data-json]")) {
  const hint = document.getElementById(editor.dataset.json);
  const layOut = document.querySelector(`[data-lay-out="${editor.id}"]`);

  function read() {
    try {
      const value = JSON.parse(editor.value);
      if (value === null || typeof value !== "object" || Array.isArray(value)) {
        return { problem: "Enter one JSON object, which starts with { and ends with }." };
      }
      return { value };
    } catch (error) {
      return { problem: `Invalid JSON: ${error.message}` };
    }
  }

  function check() {
    const { problem } = read();
    hint.textContent = problem || "Valid JSON.";
    hint.classList.toggle("good", !problem);
    hint.classList.toggle("bad", Boolean(problem));
    layOut.disabled = Boolean(problem);
  }

  layOut.hidden = false;
  layOut.addEventListener("click", () => {
    const { value } = read();
    if (value) editor.value = JSON.stringify(value, null, 2);
    check();
  });
  editor.addEventListener("input", check);
  check();
}
