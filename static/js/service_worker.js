// The service worker of the app: shows notifications, even if no page of the service is open. It
// handles no requests and caches no pages.
"use strict";

// Cache for the tokens that renew the subscription, one for each contact. this_device.js stores them.
const STORE = "gatebell-device";
const scope = self.registration.scope;
const renewal = new URL("-/devices/renew", scope).href;

// Returns a URL at this origin for the path of a link in a message.
function local(address) {
  if (!address) return scope;
  const { pathname, search } = new URL(address, scope);
  return new URL(pathname + search, scope).href;
}

function show(title, options) {
  return self.registration.showNotification(title, {
    icon: new URL("static/icons/192.png", scope).href,
    renotify: Boolean(options.tag),
    ...options,
  });
}

async function closeEnded(tags) {
  for (const tag of tags) {
    for (const each of await self.registration.getNotifications({ tag })) each.close();
  }
}

async function receive(data) {
  let message;
  try {
    message = data.json();
  } catch {
    message = { title: "New message", body: "", url: "", acknowledge: "", tag: "", ended: [] };
  }
  await closeEnded(message.ended);
  const actions = [{ action: "open", title: "Open" }];
  if (message.acknowledge) actions.unshift({ action: "acknowledge", title: "Acknowledge" });
  await show(message.title, {
    body: message.body,
    tag: message.tag,
    requireInteraction: Boolean(message.alarm),
    actions,
    data: {
      title: message.title,
      body: message.body,
      url: message.url,
      acknowledge: message.acknowledge,
      subject: message.subject,
    },
  });
}

async function acknowledge({ tag, data }) {
  const about = { body: `${data.title}\n${data.body}`, tag };
  const open = { action: "open", title: "Open" };
  try {
    const answer = await fetch(local(data.acknowledge), {
      method: "POST",
      headers: { Accept: "application/json" },
      credentials: "omit",
      body: new URLSearchParams(data.subject ? { alert: data.subject } : {}),
    });
    if (!answer.ok) throw new Error(`the service returned ${answer.status}`);
    const { acknowledged } = await answer.json();
    await show(acknowledged ? "Acknowledged" : "No longer needs attention", {
      ...about,
      data: { ...data, acknowledge: "" },
      actions: [open],
      silent: true,
      renotify: false,
    });
  } catch {
    await show("Not acknowledged. Try again, or open the alert.", {
      ...about,
      data,
      requireInteraction: true,
      actions: [{ action: "acknowledge", title: "Acknowledge" }, open],
    });
  }
}

async function openPage(address) {
  const url = local(address);
  const windows = await self.clients.matchAll({ type: "window" });
  const same = windows.find((each) => each.url === url);
  await (same ? same.focus() : self.clients.openWindow(url));
}

// Renews the subscription of a contact. Returns false if the contact no longer exists.
async function renewContact(store, entry, saved, subscription) {
  const answer = await fetch(renewal, {
    method: "POST",
    credentials: "omit",
    body: new URLSearchParams({ token: saved.token, subscription: JSON.stringify(subscription) }),
  });
  if (answer.status === 404) {
    await store.delete(entry);
    return false;
  }
  if (!answer.ok) throw new Error(`the service returned ${answer.status}`);
  const { token } = await answer.json();
  await store.put(entry, new Response(JSON.stringify({ ...saved, token })));
  return true;
}

// Sends the new subscription to the server. A browser can replace its subscription at any time.
async function renew(event) {
  try {
    const store = await caches.open(STORE);
    const entries = await Promise.all((await store.keys()).map(async (entry) => (
      { entry, saved: await (await store.match(entry)).json() }
    )));
    const subscription = event.newSubscription || await self.registration.pushManager.subscribe({
      userVisibleOnly: true,
      applicationServerKey: entries[0].saved.key,
    });
    const renewed = await Promise.all(entries.map(({ entry, saved }) => (
      renewContact(store, entry, saved, subscription)
    )));
    if (!renewed.includes(true)) throw new Error("no contact uses this subscription");
  } catch {
    await show("Notifications on this device have ended", {
      body: "Open your contacts, and turn them on again.",
      tag: "ended",
      requireInteraction: true,
      data: { url: new URL("-/user_settings/contacts", scope).href },
    });
  }
}

self.addEventListener("push", (event) => event.waitUntil(receive(event.data)));
self.addEventListener("notificationclick", (event) => {
  if (event.action === "acknowledge") {
    event.waitUntil(acknowledge(event.notification));
  } else {
    event.notification.close();
    event.waitUntil(openPage(event.notification.data?.url));
  }
});
self.addEventListener("pushsubscriptionchange", (event) => event.waitUntil(renew(event)));
self.addEventListener("install", () => self.skipWaiting());
self.addEventListener("activate", (event) => event.waitUntil(self.clients.claim()));
