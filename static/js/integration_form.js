// The form for a new integration: shows the API URL if the type has an API URL, and requires a name
// if another integration has the same type.
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
  // Some types have a default URL. A URL that the user entered is kept.
  if (!apiUrl.value || Object.values(usual).includes(apiUrl.value)) {
    apiUrl.value = usual[type.value] ?? "";
  }
}

if (type && apiUrl) {
  type.addEventListener("change", fit);
  fit();
}
