// Passkeys: requests options from the server, calls the authenticator, and submits its response.
"use strict";

function bytesOf(text) {
  const base64 = text.replaceAll("-", "+").replaceAll("_", "/");
  return Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
}

function textOf(buffer) {
  const letters = Array.from(new Uint8Array(buffer), (byte) => String.fromCharCode(byte));
  return btoa(letters.join("")).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

function withIds(credentials) {
  return (credentials || []).map((each) => ({ ...each, id: bytesOf(each.id) }));
}

async function make(options) {
  const made = await navigator.credentials.create({
    publicKey: {
      ...options,
      challenge: bytesOf(options.challenge),
      user: { ...options.user, id: bytesOf(options.user.id) },
      excludeCredentials: withIds(options.excludeCredentials),
    },
  });
  const { response } = made;
  return answerOf(made, {
    attestationObject: textOf(response.attestationObject),
    transports: response.getTransports ? response.getTransports() : [],
  });
}

async function use(options) {
  const used = await navigator.credentials.get({
    publicKey: {
      ...options,
      challenge: bytesOf(options.challenge),
      allowCredentials: withIds(options.allowCredentials),
    },
  });
  return answerOf(used, {
    authenticatorData: textOf(used.response.authenticatorData),
    signature: textOf(used.response.signature),
  });
}

function answerOf(credential, more) {
  return JSON.stringify({
    id: credential.id,
    rawId: textOf(credential.rawId),
    type: credential.type,
    response: { clientDataJSON: textOf(credential.response.clientDataJSON), ...more },
  });
}

// Messages for browser errors.
const TROUBLE = {
  NotAllowedError: "The request was canceled or timed out.",
  InvalidStateError: "This authenticator already has a passkey for your account.",
  SecurityError: "This browser does not accept passkeys at this URL.",
};

async function fetchOptions(form) {
  const answer = await fetch(form.dataset.question, {
    method: "POST",
    body: new FormData(form),
    headers: { Accept: "application/json" },
  });
  const body = await answer.json().catch(() => ({}));
  if (answer.ok) return body;
  throw new Error(body.message || "The server did not respond. Reload the page and try again.");
}

async function run(form) {
  const trouble = form.querySelector("[data-passkey-trouble]");
  const button = form.querySelector("button[type=submit]");
  trouble.textContent = "";
  button.disabled = true;
  try {
    const options = await fetchOptions(form);
    form.elements.credential.value = await (form.dataset.passkey === "make" ? make : use)(options);
    for (const field of form.querySelectorAll("input[type=password]")) field.value = "";
    form.submit();
  } catch (error) {
    trouble.textContent = TROUBLE[error.name] || error.message;
    button.disabled = false;
    button.focus();
  }
}

if (window.PublicKeyCredential && navigator.credentials) {
  for (const form of document.querySelectorAll("form[data-passkey]")) {
    form.hidden = false;
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      // This event does not submit the form, so page.js must not treat the form as submitted.
      event.stopPropagation();
      run(form);
    });
  }
  for (const without of document.querySelectorAll("[data-without-passkeys]")) without.hidden = true;
}
// The button must work again when the browser restores the page from its cache.
window.addEventListener("pageshow", () => {
  for (const button of document.querySelectorAll("form[data-passkey] button")) {
    button.disabled = false;
  }
});
