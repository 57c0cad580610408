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
  field.hidden = type.value === "http";
  require(apiUrl, !field.hidden);
  const { placeholder } = apiUrl.dataset;
  // Any address will do for Prometheus; what somebody typed stays.
  if (type.value === "prometheus" && !apiUrl.value) apiUrl.value = placeholder;
  else if (type.value !== "prometheus" && apiUrl.value === placeholder) apiUrl.value = "";
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
