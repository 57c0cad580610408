// Sends an example request with each of two releases, and shows both responses next to each other. The
// token is sent only to the API, and is not stored.
"use strict";

const form = document.querySelector("[data-compare]");
const results = document.querySelector("[data-compared]");
const summary = document.querySelector("[data-compare-summary]");

// Returns the values of a JSON document by path, such as `[].name`.
function listPaths(value, path = "", found = new Map()) {
  if (Array.isArray(value)) {
    value.slice(0, 1).forEach((item) => listPaths(item, `${path}[]`, found));
    if (!value.length) found.set(path || "(empty list)", "[]");
  } else if (value && typeof value === "object") {
    for (const [name, item] of Object.entries(value)) listPaths(item, path ? `${path}.${name}` : name, found);
  } else found.set(path, JSON.stringify(value));
  return found;
}

async function ask(release) {
  const address = form.dataset.compare.replace(/\/:(\w+)/g, (_, name) => "/" + encodeURIComponent(form.elements[`path-${name}`].value));
  const query = new URLSearchParams();
  for (const field of form.querySelectorAll("[data-parameter]")) if (field.value) query.append(field.dataset.parameter, field.value);
  const headers = { "Platform-Release": release };
  const token = form.elements.token.value.trim();
  if (token) headers["PRIVATE-TOKEN"] = token;
  const answer = await fetch(query.size ? `${address}?${query}` : address, { headers, credentials: "omit" });
  const text = await answer.text();
  let body = text;
  try { body = JSON.parse(text); } catch { /* A response that is not JSON is shown as text. */ }
  return { release, status: answer.status, body, paths: listPaths(body) };
}

// Shows a response, and highlights the lines whose fields differ in the other response.
function showResponse(place, response, different) {
  place.querySelector("h3").textContent = `Release ${response.release}: ${response.status}`;
  const code = place.querySelector("code");
  code.replaceChildren();
  const text = typeof response.body === "string" ? response.body : JSON.stringify(response.body, null, 2);
  const names = new Set(different.map((path) => path.split(".").pop().replace("[]", "")));
  for (const line of text.split("\n")) {
    const name = line.match(/^\s*"([^"]+)":/)?.[1];
    const shown = document.createElement(names.has(name) ? "mark" : "span");
    shown.textContent = line;
    code.append(shown, "\n");
  }
}

function describe(former, later) {
  const gone = [...former.paths.keys()].filter((path) => !later.paths.has(path));
  const added = [...later.paths.keys()].filter((path) => !former.paths.has(path));
  const changed = [...later.paths.keys()].filter((path) => former.paths.has(path) && former.paths.get(path) !== later.paths.get(path));
  const parts = [];
  const list = (paths) => paths.map((path) => path.replace(/^\[\]\./, "")).join(", ");
  if (former.status !== later.status) parts.push(`Status ${former.status} becomes ${later.status}.`);
  if (former.status === later.status || later.status < 400) {
    if (gone.length) parts.push(`Removed: ${list(gone)}.`);
    if (added.length) parts.push(`Added: ${list(added)}.`);
    if (changed.length) parts.push(`Changed: ${list(changed)}.`);
  }
  summary.textContent = parts.join(" ") || "Both responses are the same.";
  return [...gone, ...added, ...changed];
}

const dialog = form.closest("dialog");
const opener = document.querySelector("[data-compare-open]");
opener.hidden = false;
opener.addEventListener("click", () => dialog.showModal());
form.querySelector("[data-compare-close]").addEventListener("click", () => dialog.close());
form.addEventListener("submit", async (event) => {
  event.preventDefault();
  summary.textContent = "Sending both requests…";
  try {
    const [former, later] = await Promise.all([ask(form.dataset.former), ask(form.dataset.later)]);
    const different = describe(former, later);
    const [left, right] = results.children;
    showResponse(left, former, different);
    showResponse(right, later, different);
    results.hidden = false;
  } catch {
    summary.textContent = "The service could not be reached. Try again.";
  }
});
