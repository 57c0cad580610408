// Adding an integration: the API URL is asked for where the type has one.
"use strict";

const type = document.querySelector("select[name=type]");
const apiUrl = document.querySelector("input[name=api_url]");

function fit() {
  const field = apiUrl.closest(".field");
  field.hidden = type.value === "http";
  field.querySelector(".optional").hidden = !field.hidden;
  apiUrl.required = !field.hidden;
  const { placeholder } = apiUrl.dataset;
  // Any address will do for Prometheus; what somebody typed stays.
  if (type.value === "prometheus" && !apiUrl.value) apiUrl.value = placeholder;
  else if (type.value !== "prometheus" && apiUrl.value === placeholder) apiUrl.value = "";
}

if (type && apiUrl) {
  type.addEventListener("change", fit);
  fit();
}
