// Turns on notifications in this browser: requests permission, subscribes, and sends the subscription.
"use strict";

const STORE = "gatebell-device"; // service_worker.js reads this cache.

function encode(buffer) {
  const letters = Array.from(new Uint8Array(buffer), (byte) => String.fromCharCode(byte));
  return btoa(letters.join("")).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

async function computeDigest(subscription) {
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(subscription.endpoint));
  return Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

// Returns a name for this device, such as "Chromium on Linux".
function nameDevice() {
  const agent = navigator.userAgent;
  const find = (names) => (names.find(([pattern]) => pattern.test(agent)) || [null, ""])[1];
  const brands = (navigator.userAgentData?.brands || []).map(({ brand }) => brand);
  const browser = ["Google Chrome", "Microsoft Edge", "Opera", "Brave", "Chromium"].find((each) => brands.includes(each))
    || find([[/Edg\//, "Microsoft Edge"], [/OPR\//, "Opera"], [/Firefox|FxiOS/, "Firefox"],
      [/Chrom(e|ium)|CriOS/, "Chromium"], [/Safari/, "Safari"]]) || "Browser";
  const system = find([[/iPhone/, "iPhone"], [/iPad/, "iPad"], [/Android/, "Android"], [/CrOS/, "ChromeOS"],
    [/Windows/, "Windows"], [/Mac OS/, "macOS"], [/Linux/, "Linux"]]);
  return system ? `${browser} on ${system}` : browser;
}

function start(part) {
  const form = part.querySelector("form[data-device-form]");
  const button = part.querySelector("[data-device-turn-on]");
  const trouble = part.querySelector("[data-device-trouble]");
  const { worker, scope, question } = part.dataset;

  function showState(state) {
    for (const each of part.querySelectorAll("[data-device-state]")) {
      each.hidden = each.dataset.deviceState !== state;
    }
    button.hidden = state !== "off";
  }

  const isApple = /iPhone|iPad/.test(navigator.userAgent)
    || (navigator.platform === "MacIntel" && navigator.maxTouchPoints > 1);
  if (!window.isSecureContext) return showState("insecure");
  if (!navigator.serviceWorker || !window.PushManager || !window.Notification) {
    return showState(isApple ? "home-screen" : "unsupported");
  }

  async function findSubscription() {
    const registration = await navigator.serviceWorker.getRegistration(scope);
    return registration ? registration.pushManager.getSubscription() : null;
  }

  async function findRow(subscription) {
    return part.querySelector(`[data-device-digest="${await computeDigest(subscription)}"]`);
  }

  // Shows the state of this device, and which row in the list represents the device.
  async function recognize() {
    if (Notification.permission === "denied") return showState("blocked");
    const subscription = Notification.permission === "granted" ? await findSubscription() : null;
    if (!subscription) return showState("off");
    const row = await findRow(subscription);
    if (!row || "deviceExpired" in row.dataset) return showState("off");
    row.querySelector("[data-device-own]").hidden = false;
    showState("on");
    const saved = { token: row.dataset.deviceToken, key: encode(subscription.options.applicationServerKey) };
    const store = await caches.open(STORE);
    // Several people may use this browser, so each contact has its own entry.
    const entry = new URL(`-/devices/renew?contact=${row.dataset.deviceId}`, new URL(scope, location.href));
    await store.put(entry, new Response(JSON.stringify(saved)));
  }

  async function fetchKey() {
    const answer = await fetch(question, { method: "POST", body: new FormData(form) });
    const body = await answer.json().catch(() => ({}));
    if (answer.ok) return body.public_key;
    throw new Error(body.message || "The server did not respond. Reload the page and try again.");
  }

  async function subscribe() {
    const key = await fetchKey();
    await navigator.serviceWorker.register(worker, { scope });
    const { pushManager } = await navigator.serviceWorker.ready;
    const former = await pushManager.getSubscription();
    // If the list shows this device as expired, its push service has ended the subscription.
    const hasEnded = former && "deviceExpired" in ((await findRow(former))?.dataset ?? {});
    if (former && !hasEnded && encode(former.options.applicationServerKey) === key) return former;
    if (former) await former.unsubscribe();
    return pushManager.subscribe({ userVisibleOnly: true, applicationServerKey: key });
  }

  button.addEventListener("click", async () => {
    trouble.textContent = "";
    button.disabled = true;
    try {
      if (await Notification.requestPermission() !== "granted") {
        showState(Notification.permission === "denied" ? "blocked" : "off");
        return;
      }
      form.elements.subscription.value = JSON.stringify(await subscribe());
      form.elements.label.value = nameDevice();
      form.submit();
    } catch (error) {
      trouble.textContent = error.name === "AbortError" || error.name === "NotAllowedError"
        ? "The push service of this browser is not available. Check that the browser may use it, and try again."
        : error.message;
    } finally {
      button.disabled = false;
    }
  });
  recognize().catch(() => showState("off"));
}

for (const part of document.querySelectorAll("[data-this-device]")) start(part);
