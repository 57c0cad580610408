"""Browsers as contacts: registration on the page, test messages, renewal, and the app's files."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
import requests
from sqlalchemy import Select, select

from models import AuditEvent, Contact, User
from tests.support.accounts.api_caller import api_caller
from tests.support.accounts.people import Person, database_of, make_user, open_browser
from tests.support.notifications.push_service import Device, PushService, running_push_service
from tests.support.service.live import LiveGatebell, NewService, running
from tests.support.wire.html_forms import form_to, submit
from web.jobs.paging import PagingJob
from web.jobs.scheduler import Scheduler
from web.settings.environment import parse_settings

pytestmark = [pytest.mark.spec("J1"), pytest.mark.one_database("sqlite")]
PAGE = "/-/user_settings/contacts"


@dataclass(frozen=True)
class Paged:
    """A service with a push service, to which a worker sends."""

    gatebell: LiveGatebell
    push_service: PushService


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def paged(
    request: pytest.FixtureRequest,
    new_service: NewService,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Paged]:
    with running_push_service(tmp_path_factory.mktemp("push")) as push_service:
        trusted = str(push_service.certificate)
        live = new_service(request.param, only="app", TRUSTED_CA_FILE=trusted)
        settings = parse_settings(live.environment)
        with running(live), live.keep_log(), Scheduler([PagingJob(settings)], settings):
            yield Paged(live, push_service)


def turn_on(
    browser: requests.Session,
    gatebell: LiveGatebell,
    device: Device,
    label: str = "Firefox on Linux",
) -> requests.Response:
    """Send what the script of the page sends, and return the page afterwards."""
    page = browser.get(f"{gatebell.url}{PAGE}")
    form = form_to(page, "/contacts/devices")
    answer = submit(browser, page, form, subscription=device.subscription, label=label)
    assert answer.status_code == 302, answer.text
    return browser.get(page.url)


def press(browser: requests.Session, page: requests.Response, ending: str) -> requests.Response:
    answer = submit(browser, page, form_to(page, ending))
    assert answer.status_code == 302, answer.text
    return browser.get(page.url)


def contacts_of(person: Person) -> Select[int]:
    return select(Contact.id).join(User).where(User.username == person.username)


@pytest.fixture
def alice(paged: Paged) -> Person:
    return make_user(paged.gatebell)


def test_a_device_is_turned_on_tested_and_removed(paged: Paged, alice: Person) -> None:
    gatebell, device = paged.gatebell, paged.push_service.device("first")
    browser = open_browser(gatebell, alice)
    page = turn_on(browser, gatebell, device)
    assert "You are paged through 1 contact." in page.text
    assert "Pages are now shown on “Firefox on Linux”." in page.text
    # The page contains neither the endpoint nor its keys.
    assert device.path not in page.text
    assert "<bdi>127.0.0.1</bdi>" in page.text
    page = press(browser, page, "/test")
    assert "Test message sent." in page.text
    (push,) = device.pushes
    assert push.payload["title"] == "Test message from Gatebell"
    # Turning it on again changes nothing.
    page = turn_on(browser, gatebell, device)
    assert page.text.count("data-device-digest") == 1
    page = press(browser, page, "/delete")
    assert "The contact “Firefox on Linux” was deleted." in page.text
    with database_of(gatebell) as session:
        events = select(AuditEvent.kind).where(AuditEvent.actor_name == alice.username)
        found = session.scalars(events.order_by(AuditEvent.id)).all()
        kinds = [each for each in found if each.startswith("contact.")]
    assert kinds == ["contact.created", "contact.confirmed", "contact.removed"]


def test_subscriptions_that_are_not_valid_are_rejected(paged: Paged, alice: Person) -> None:
    gatebell, device = paged.gatebell, paged.push_service.device("bad")
    browser = open_browser(gatebell, alice)
    page = browser.get(f"{gatebell.url}{PAGE}")
    for text, problem in (
        (device.subscription.replace("https://", "http://"), "must begin with https://"),
        (
            re.sub(r'"auth": "[^"]+"', '"auth": "YQ"', device.subscription),
            "subscription is invalid",
        ),
        (re.sub(r'"p256dh": ".', '"p256dh": "A', device.subscription), "subscription is invalid"),
        ("[]", "subscription is invalid"),
        (re.sub(r'"auth": "[^"]+"', '"auth": [1]', device.subscription), "subscription is invalid"),
        (device.subscription.replace("127.0.0.1", "10.1.2.3"), "OUTGOING_CONTACT_HOSTS"),
        ("[" * 100_000, "subscription is invalid"),
        ("", "The browser sent no subscription."),
    ):
        submit(browser, page, form_to(page, "/contacts/devices"), subscription=text, label="x")
        answer = browser.get(page.url)
        assert problem in answer.text, text[:100]
        assert "Remove device" not in answer.text


def test_the_key_is_created_once_for_all_users(paged: Paged) -> None:
    url = f"{paged.gatebell.url}{PAGE}"
    browsers = [open_browser(paged.gatebell, make_user(paged.gatebell)) for _ in range(2)]
    answers = [
        each.post(
            f"{url}/devices/key.json", data=form_to(each.get(url), "/devices").filled()
        ).json()
        for each in browsers
    ]
    assert answers[0] == answers[1]
    assert set(answers[0]) == {"public_key"}
    assert browsers[0].post(f"{url}/devices/key.json").status_code == 400  # no CSRF token


def test_the_api_lists_devices_but_cannot_create_them(paged: Paged, alice: Person) -> None:
    gatebell, device = paged.gatebell, paged.push_service.device("api")
    turn_on(open_browser(gatebell, alice), gatebell, device)
    call = api_caller(gatebell, alice)
    (listed,) = call.done("GET", "/user/contacts")
    assert (listed["type"], listed["address"], listed["state"]) == ("device", "127.0.0.1", "ready")
    body = {"type": "device", "address": device.subscription}
    rejected = call("POST", "/user/contacts", json=body)
    assert rejected.status_code == 400
    assert "must be one of email, apprise" in rejected.text
    address = {"address": device.subscription}
    rejected = call("PUT", f"/user/contacts/{listed['id']}", json=address)
    assert rejected.status_code == 400
    assert "Turn on notifications on the device" in rejected.text
    assert device.path not in call("GET", "/user/contacts").text
    exported = gatebell.cli("users", "export", alice.username)
    assert [each["shown_address"] for each in exported["contacts"]] == ["127.0.0.1"]
    assert device.path not in str(exported)


def test_a_browser_renews_its_subscription_with_the_token_of_the_device(
    paged: Paged, alice: Person
) -> None:
    gatebell = paged.gatebell
    old, new = paged.push_service.device("old"), paged.push_service.device("new")
    browser = open_browser(gatebell, alice)
    page = turn_on(browser, gatebell, old)
    token = re.search(r'data-device-token="([^"]+)"', page.text)
    assert token is not None
    url = f"{gatebell.url}/-/devices/renew"
    renewed = requests.post(
        url, data={"token": token[1], "subscription": new.subscription}, timeout=30
    )
    assert renewed.status_code == 200
    press(browser, browser.get(page.url), "/test")
    assert (len(old.pushes), len(new.pushes)) == (0, 1)
    # The token is only valid for the subscription that it was made for.
    for wrong in (token[1], "1.0", "", "x" * 5000, "1" * 5000, f"{2**70}.1"):
        again = requests.post(
            url, data={"token": wrong, "subscription": old.subscription}, timeout=30
        )
        assert again.status_code == 404
        assert "Device not found. Turn on notifications again." in again.text
    blocked = new.subscription.replace("127.0.0.1", "10.1.2.3")
    for subscription in ("{}", blocked):
        valid = {"token": renewed.json()["token"], "subscription": subscription}
        assert requests.post(url, data=valid, timeout=30).status_code == 422


def test_an_expired_device_is_turned_on_again_with_its_rules(paged: Paged, alice: Person) -> None:
    gatebell = paged.gatebell
    before, after = paged.push_service.device("before"), paged.push_service.device("after")
    browser = open_browser(gatebell, alice)
    page = turn_on(browser, gatebell, before)
    paged.push_service.receiver.answer = lambda request: (
        (410, {}) if request.path == before.path else (201, {})
    )
    page = press(browser, page, "/test")
    assert "the browser has ended its subscription" in page.text
    assert "Expired" in page.text
    assert "This device is no longer paged." in page.text
    with database_of(gatebell) as session:
        (before_id,) = session.scalars(contacts_of(alice))
    call = api_caller(gatebell, alice, f"/user/contacts/{before_id}")
    assert call.done("PUT", json={"label": "Old phone"})["state"] == "expired"
    call.done("PUT", json={"label": "Firefox on Linux"})
    page = turn_on(browser, gatebell, after)
    assert "Expired" not in page.text
    with database_of(gatebell) as session:
        (after_id,) = session.scalars(contacts_of(alice))
    assert after_id == before_id
    press(browser, page, "/test")
    assert len(after.pushes) == 1


def test_the_files_of_the_app_are_not_cached_and_restricted(paged: Paged) -> None:
    manifest = requests.get(f"{paged.gatebell.url}/manifest.webmanifest", timeout=30)
    assert manifest.headers["Content-Type"] == "application/manifest+json"
    shown = manifest.json()
    assert (shown["display"], shown["scope"], shown["start_url"]) == ("standalone", "/", "/")
    assert {each["purpose"] for each in shown["icons"]} == {"any", "maskable"}
    for each in shown["icons"]:
        icon = requests.get(f"{paged.gatebell.url}{each['src']}", timeout=30)
        assert icon.status_code == 200
        size = int.from_bytes(icon.content[16:20], "big")  # the width in a PNG's header
        assert each["sizes"] in {"any", f"{size}x{size}"}
    script = requests.get(f"{paged.gatebell.url}/service-worker.js", timeout=30)
    assert script.headers["Content-Type"].startswith("text/javascript")
    policy = script.headers["Content-Security-Policy"]
    assert policy == "default-src 'none'; connect-src 'self'; img-src 'self'"
    for answer in (manifest, script):
        assert answer.headers["Cache-Control"] == "no-cache"
        assert "Set-Cookie" not in answer.headers
