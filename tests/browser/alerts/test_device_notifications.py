"""Notifications of a browser: turned on on the contacts page, shown and answered by the worker.

Chromium without a display has no push service, so the test replaces the subscription, and Chromium
delivers the messages of the test to the service worker itself.
"""

import json
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import BrowserContext, CDPSession, Page, Worker, expect
from sqlalchemy import select

from domain.paging.notifications.acknowledgement_links import AcknowledgementLink, sign_link
from models import Alert, PageBatch, PageRecipient, User
from models import Page as PageRow
from tests.browser.doors import have_signed_in
from tests.browser.looks import problems_of
from tests.support.accounts.people import (
    Person,
    alice,
    database_of,
    make_user,
    now,
    settings_of,
)
from tests.support.alerts.monitoring import wait_until
from tests.support.alerts.senders import connect
from tests.support.notifications.push_service import Device, PushService
from tests.support.service.live import LiveGatebell
from tests.support.service.message_receiver import Receiver

pytestmark = pytest.mark.one_database("sqlite")
CONTACTS = "/-/user_settings/contacts"
#: The subscription that a browser with a push service would have.
_REPLACED = """
  const made = SUBSCRIPTION;
  let current = sessionStorage.getItem("subscribed");
  const build = (key) => ({
    endpoint: made.endpoint, toJSON: () => made, unsubscribe: async () => true,
    options: { applicationServerKey: Uint8Array.from(
      atob(key.replaceAll("-", "+").replaceAll("_", "/")), (letter) => letter.charCodeAt(0),
    ).buffer },
  });
  PushManager.prototype.getSubscription = async () => current && build(current);
  PushManager.prototype.subscribe = async ({ applicationServerKey, userVisibleOnly }) => {
    if (!userVisibleOnly) throw new Error("a push message must be shown");
    sessionStorage.setItem("subscribed", current = applicationServerKey);
    return build(current);
  };
"""


class Deliverer:
    """Delivers messages to the service worker of a page, as a push service does."""

    def __init__(self, page: Page) -> None:
        self._page = page
        self._session: CDPSession = page.context.new_cdp_session(page)
        self._registrations: list[str] = []
        self._session.on("ServiceWorker.workerRegistrationUpdated", self._note)
        self._session.send("ServiceWorker.enable")

    def _note(self, event: dict[str, Any]) -> None:
        self._registrations += [each["registrationId"] for each in event["registrations"]]

    def deliver(self, **message: Any) -> None:
        while not self._registrations:
            self._page.wait_for_timeout(50)  # Events arrive only while the page is waited for.
        usual = {"body": "", "url": "", "acknowledge": "", "ended": [], "alarm": True}
        parts = urlsplit(self._page.url)
        self._session.send(
            "ServiceWorker.deliverPushMessage",
            {
                "origin": f"{parts.scheme}://{parts.netloc}",
                "registrationId": self._registrations[-1],
                "data": json.dumps({**usual, **message}),
            },
        )

    @property
    def shown(self) -> list[dict[str, Any]]:
        """Notifications that the browser shows."""
        found: list[dict[str, Any]] = self._page.evaluate(
            """async () => {
              const shown = await (await navigator.serviceWorker.ready).getNotifications();
              return shown.map(({ title, body, actions }) =>
                ({ title, body, actions: actions.map((each) => each.title) }));
            }"""
        )
        return found

    def wait_for(self, *titles: str) -> list[dict[str, Any]]:
        wait_until(lambda: [each["title"] for each in self.shown] == [*titles], f"{titles}")
        return self.shown


@pytest.fixture
def person(live_sqlite: LiveGatebell) -> Person:
    return make_user(live_sqlite)


@pytest.fixture
def turned_on(visitor: BrowserContext, live_sqlite: LiveGatebell, person: Person) -> Page:
    """The contacts page of a user who has just turned on notifications in this browser."""
    visitor.grant_permissions(["notifications"], origin=live_sqlite.url)
    device = Device(PushService(Receiver(port=443), live_sqlite.instance_path), "browser")
    visitor.add_init_script(f"{{{_REPLACED.replace('SUBSCRIPTION', device.subscription)}}}")
    page = visitor.new_page()
    have_signed_in(page, live_sqlite, person)
    page.goto(f"{live_sqlite.url}{CONTACTS}")
    page.get_by_role("button", name="Turn on notifications on this device").click()
    expect(page.get_by_text("Pages are now shown on")).to_be_visible()
    return page


def link_about(gatebell: LiveGatebell, person: Person) -> tuple[int, str]:
    """Page Alice about a new alert; return the id of the alert, and the link of the message."""
    endpoint = connect(gatebell)
    endpoint.accepted(title="Disk full")
    with database_of(gatebell) as session:
        alert = session.scalars(select(Alert).order_by(Alert.id.desc())).first()
        user_id = session.scalars(select(User.id).where(User.username == person.username)).one()
        assert alert is not None
        recipient = PageRecipient(user_id=user_id)
        session.add(recipient)
        session.flush()
        batch = PageBatch(recipient_id=recipient.id, created_at=now() - timedelta(seconds=1))
        session.add(batch)
        session.flush()
        about = {"recipient_id": recipient.id, "alert_id": alert.id, "batch_id": batch.id}
        times = {"created_at": now(), "due_at": now()}
        session.add(PageRow(key=f"browser {alert.id}", kind="firing", **about, **times))
        link = AcknowledgementLink(user_id=user_id, first_batch_id=batch.id, last_batch_id=batch.id)
        sealed = sign_link(link, [settings_of(gatebell).secret_key], now=now())
        return alert.id, f"{gatebell.url}/-/acknowledge/{sealed}"


def click_action(worker: Worker, action: str) -> None:
    """Select an action of the only notification; scripts cannot wait for events of their own."""
    worker.evaluate(
        """async (action) => {
          const [notification] = await self.registration.getNotifications();
          self.dispatchEvent(new NotificationEvent("notificationclick", { action, notification }));
        }""",
        action,
    )


def test_a_notification_of_this_device_acknowledges_the_alert(
    turned_on: Page, live_sqlite: LiveGatebell
) -> None:
    page = turned_on
    expect(page.get_by_role("heading", name="Chromium on Linux")).to_contain_text("This device")
    expect(page.get_by_text("Notifications are turned on in this browser.")).to_be_visible()
    expect(page.get_by_role("button", name="Turn on notifications")).to_be_hidden()
    assert problems_of(page) == []
    deliverer = Deliverer(page)
    alert_id, link = link_about(live_sqlite, alice(live_sqlite))
    message = {"title": "Critical: Disk full", "body": "acme/shop #1", "tag": "one"}
    (worker,) = page.context.service_workers
    # Only the alert of the notification is acknowledged, not another alert of the link.
    deliverer.deliver(**message, acknowledge=link, subject=str(alert_id + 1))
    deliverer.wait_for("Critical: Disk full")
    click_action(worker, "acknowledge")
    deliverer.wait_for("No longer needs attention")
    deliverer.deliver(**message, acknowledge=link, subject=str(alert_id))
    (shown,) = deliverer.wait_for("Critical: Disk full")
    assert shown["actions"] == ["Acknowledge", "Open"]
    click_action(worker, "acknowledge")
    (shown,) = deliverer.wait_for("Acknowledged")
    assert shown["body"] == "Critical: Disk full\nacme/shop #1"
    assert shown["actions"] == ["Open"]
    with database_of(live_sqlite) as session:
        assert session.get_one(Alert, alert_id).status == "acknowledged"

    # A message about the end of an alert replaces its notification, or closes it.
    deliverer.deliver(title="Resolved: Disk full", tag="one", alarm=False)
    deliverer.wait_for("Resolved: Disk full")
    deliverer.deliver(title="Updates on 2 alerts", tag="two", ended=["one"], alarm=False)
    deliverer.wait_for("Updates on 2 alerts")

    # An invalid link acknowledges nothing, and the notification shows an error.
    deliverer.deliver(title="High: CPU", tag="three", ended=["two"], acknowledge=f"{link}x")
    deliverer.wait_for("High: CPU")
    click_action(worker, "acknowledge")
    (shown,) = deliverer.wait_for("Not acknowledged. Try again, or open the alert.")
    assert shown["actions"] == ["Acknowledge", "Open"]


def test_the_page_explains_why_notifications_are_not_available(
    visitor: BrowserContext, live_sqlite: LiveGatebell, person: Person
) -> None:
    page = visitor.new_page()
    have_signed_in(page, live_sqlite, person)
    for script, words in (
        ("Object.defineProperty(Notification, 'permission', { get: () => 'denied' })", "blocked"),
        ("delete window.PushManager", "does not support notifications"),
    ):
        page.add_init_script(script)
        page.goto(f"{live_sqlite.url}{CONTACTS}")
        expect(page.get_by_text(words)).to_be_visible()
        expect(page.get_by_role("button", name="Turn on notifications")).to_be_hidden()
