// Adding an integration: the API URL is asked for where the type has one, and a name where there is
// another of the type. A payload that is pasted is recognized.
"use strict";

const type = document.querySelector("select[name=type]");
const apiUrl = document.querySelector("input[name=api_url]");
const label = document.querySelector("input[name=name]");

function require(field, isNeeded) {
  field.required = isNeeded;
  field.closest(".field").querySelector(".optional").hidden = isNeeded;
}

function fit() {
  require(label, label.dataset.neededFor.split(" ").includes(type.value));
  const field = apiUrl.closest(".field");
  const usual = JSON.parse(apiUrl.dataset.usual);
  field.hidden = !(type.value in usual);
  require(apiUrl, apiUrl.dataset.neededFor.split(" ").includes(type.value));
  // A type may have a usual address; what somebody typed stays.
  if (!apiUrl.value || Object.values(usual).includes(apiUrl.value)) {
    apiUrl.value = usual[type.value] ?? "";
  }
}

if (type && apiUrl) {
  type.addEventListener("change", fit);
  fit();
}

// What was pasted is recognized at once; the button does the same.
const sample = document.querySelector("textarea[data-recognize]");
if (sample) {
  sample.addEventListener("paste", () => setTimeout(() => sample.form.requestSubmit()));
}
