"""Contacts and channels on pages and in the API, with a worker, a mail server and an endpoint.

Only the worker's paging job runs, in threads of this process.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from time import monotonic, sleep
from urllib.parse import quote

import pytest
import requests

from models import AuditEvent, Contact
from tests.support.accounts.api_caller import api_caller
from tests.support.accounts.people import (
    database_of,
    make_project,
    make_user,
    open_browser,
    signed_in,
)
from tests.support.alerts.monitoring import wait_until
from tests.support.mail.mail_server import Mailbox, running_mail_server
from tests.support.service.live import LiveGatebell, NewService, running
from tests.support.service.message_receiver import Receiver, running_telephone
from tests.support.wire.html_forms import form_to, form_with, submit
from web.jobs.paging import PagingJob
from web.jobs.scheduler import Scheduler
from web.settings.environment import parse_settings

pytestmark = [pytest.mark.spec("J1"), pytest.mark.one_database("sqlite")]
PAGE = "/-/user_settings/contacts"
_SECRET = "s3cr3t-token-of-alice"
_PATIENCE_SECONDS = 60


@dataclass(frozen=True)
class Post:
    """A service with the mail server that it sends to."""

    gatebell: LiveGatebell
    mailbox: Mailbox

    def codes(self, address: str) -> list[str]:
        """Return the codes that were sent to an address."""
        mails = (each for each in self.mailbox.messages if each["To"] == address)
        found = (re.match(r"(\d{6}) is your code", str(each["Subject"])) for each in mails)
        return [each[1] for each in found if each]

    def code(self, address: str, count: int = 1) -> str:
        """Wait for the given number of codes, and return the last code."""
        end = monotonic() + _PATIENCE_SECONDS
        while len(self.codes(address)) < count:
            assert monotonic() < end, self.mailbox.messages
            sleep(0.02)
        return self.codes(address)[-1]


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def post(request: pytest.FixtureRequest, new_service: NewService) -> Iterator[Post]:
    mailbox = Mailbox()
    with running_mail_server(mailbox) as port:
        live = new_service(request.param, only="app", MAIL_URL=f"smtp://127.0.0.1:{port}")
        settings = parse_settings(live.environment)
        with running(live), live.keep_log(), Scheduler([PagingJob(settings)], settings):
            yield Post(live, mailbox)


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with running_telephone() as taking:
        yield taking


def press(
    browser: requests.Session, page: requests.Response, ending: str, **values: str
) -> requests.Response:
    """Submit the form whose target has this ending, and return the page afterwards."""
    answer = submit(browser, page, form_to(page, ending), **values)
    assert answer.status_code == 302, answer.text
    return browser.get(page.url)


@pytest.mark.long
def test_without_a_mail_server_no_code_is_announced(gatebell: LiveGatebell) -> None:
    browser = open_browser(gatebell, make_user(gatebell))
    page = browser.get(f"{gatebell.url}{PAGE}?service=email")
    assert "This service cannot send email until an administrator sets MAIL_URL." in page.text
    submit(browser, page, form_with(page, "address"), address="a2@pager.example")
    answer = browser.get(f"{gatebell.url}{PAGE}")
    assert "No code was sent.</strong> This service cannot send email" in answer.text


@pytest.mark.long
@pytest.mark.both_databases
def test_a_contact_is_added_confirmed_tested_and_deleted(post: Post) -> None:
    gatebell, address = post.gatebell, "a1@pager.example"
    alice = make_user(gatebell)
    browser = open_browser(gatebell, alice)
    page = browser.get(f"{gatebell.url}{PAGE}")
    assert f"You are paged at {alice.email}" in page.text
    form = browser.get(f"{gatebell.url}{PAGE}?service=email")
    submit(browser, form, form_with(form, "address"), address=address, label="Phone")
    page = browser.get(page.url)
    assert "Unconfirmed" in page.text
    state = re.search(r'data-watch="([^"]+/code)"', page.text)
    assert state is not None
    wait_until(
        lambda: "The code was sent" in browser.get(f"{gatebell.url}{state[1]}").text,
        "the page does not show that the code was sent",
    )

    wrong = "000000" if post.code(address) != "000000" else "111111"
    page = press(browser, page, "/confirm", code=wrong)
    assert "The code is wrong. Enter the latest code that was sent." in page.text
    page = press(browser, page, "/confirm", code=post.code(address))
    assert "Contact confirmed." in page.text
    assert "You are paged through 1 contact." in page.text

    page = press(browser, page, "/test")
    assert "Test message sent." in page.text
    assert str(post.mailbox.messages[-1]["Subject"]).startswith("Test message from")
    page = press(browser, page, "/delete")
    assert "The contact “Phone” was deleted." in page.text
    assert "a1@pager.example" not in page.text


@pytest.mark.long
@pytest.mark.spec("K1")
def test_audit_events_of_contacts_contain_no_addresses(post: Post) -> None:
    alice = make_user(post.gatebell)
    path = make_project(post.gatebell, alice)
    call = api_caller(post.gatebell, alice)
    body = {"type": "email", "address": "a6@pager.example", "label": "Bedside"}
    mine = call.done("POST", "/user/contacts", status=201, json=body)["id"]
    code = post.code("a6@pager.example")
    call.done("POST", f"/user/contacts/{mine}/confirm", json={"code": code})
    call.done("PUT", "/user/contacts/preferences", json={"follow_ups": False})
    call.done("DELETE", f"/user/contacts/{mine}", status=204)
    at = f"/projects/{path.replace('/', '%2F')}/notification_channels"
    channel = call.done("POST", at, status=201, json=body)["id"]
    call.done("DELETE", f"{at}/{channel}", status=204)
    with database_of(post.gatebell) as session:
        rows = session.query(AuditEvent).filter_by(actor_name=alice.username).order_by("id").all()
        events = [(row.kind, f"{row.subject} {row.details}") for row in rows]
    wanted = [
        "contact.created",
        "contact.confirmed",
        "paging_preferences.changed",
        "contact.removed",
        "notification_channel.created",
        "notification_channel.removed",
    ]
    assert [kind for kind, _ in events if kind in wanted] == wanted
    assert not any("pager.example" in text or "Bedside" in text for _, text in events)


def test_a_code_allows_five_attempts_and_expires_with_a_new_code(post: Post) -> None:
    address = "a2@pager.example"
    call = api_caller(post.gatebell, make_user(post.gatebell), "/user/contacts")
    made = call.done("POST", status=201, json={"type": "email", "address": address})
    assert made["state"] == "unconfirmed"
    at = f"/{made['id']}"
    right = post.code(address)
    wrong = str((int(right) + 1) % 1_000_000).zfill(6)
    for _ in range(5):
        assert "The code is wrong." in call.refused("POST", f"{at}/confirm", json={"code": wrong})
    assert "too many wrong codes" in call.refused("POST", f"{at}/confirm", json={"code": right})
    call.done("POST", f"{at}/send_code")
    code = post.code(address, 2)
    assert call.done("POST", f"{at}/confirm", json={"code": f" {code} "})["state"] == "ready"
    assert call.done("POST", f"{at}/test") == {"delivered": True, "error": None}


def test_an_unconfirmed_contact_gets_only_codes(post: Post) -> None:
    call = api_caller(post.gatebell, make_user(post.gatebell), "/user/contacts")
    body = {"type": "email", "address": "a3@pager.example"}
    made = call.done("POST", status=201, json=body)
    assert "Confirm the contact first" in call.refused("POST", f"/{made['id']}/test")


def test_contacts_of_other_users_are_not_found(post: Post) -> None:
    gatebell = post.gatebell
    alice, bob = make_user(gatebell), make_user(gatebell, name="bob")
    mine, theirs = (api_caller(gatebell, each, "/user/contacts") for each in (alice, bob))
    body = {"type": "email", "address": "a4@pager.example"}
    made = mine.done("POST", status=201, json=body)
    assert theirs.done("GET") == []
    for method, path in (("GET", ""), ("DELETE", ""), ("POST", "/test"), ("POST", "/send_code")):
        said = theirs.refused(method, f"/{made['id']}{path}", status=404)
        assert said == "404 Not Found: Contact not found."
    theirs.refused("POST", f"/{made['id']}/confirm", status=404, json={"code": "1"})
    assert [each["id"] for each in mine.done("GET")] == [made["id"]]


@pytest.mark.long
def test_the_test_of_a_channel_shows_the_error_of_its_service(
    post: Post, receiver: Receiver
) -> None:
    gatebell = post.gatebell
    alice = make_user(gatebell)
    path = make_project(gatebell, alice)
    at = f"{gatebell.url}/{path}/-/settings/channels"
    browser = open_browser(gatebell, alice)
    page = browser.get(f"{at}?service=apprise")
    url = f"ntfy://alice:{_SECRET}@127.0.0.1:{receiver.port}/{_SECRET}"
    submit(browser, page, form_with(page, "address"), address=url, label="Chat")
    page = press(browser, browser.get(at), "/test")
    assert "Test message sent." in page.text
    assert receiver.received[0].event["title"].startswith("Test message from")

    receiver.answer = lambda _request: (403, {})
    page = press(browser, page, "/test")
    assert "ntfy returned 403 Forbidden: Failed to send ntfy notification" in page.text
    assert _SECRET not in page.text
    with database_of(gatebell) as session:
        row = session.query(Contact).filter_by(label="Chat").one()
        assert _SECRET not in f"{row.address_ciphertext} {row.shown_address} {row.lane}"
    page = press(browser, page, "/delete")
    assert "The channel “Chat” was deleted." in page.text
    assert _SECRET not in gatebell.log_text()


@pytest.mark.long
def test_responses_of_a_service_are_hidden_until_it_accepts_a_message(
    post: Post, receiver: Receiver
) -> None:
    alice = make_user(post.gatebell)
    receiver.answer, receiver.words = lambda _request: (403, {}), b"what only insiders read"
    url = {"type": "apprise", "address": receiver.contact_url}
    contacts = api_caller(post.gatebell, alice, "/user/contacts")
    made = contacts.done("POST", status=201, json=url)

    def error() -> str | None:
        found: str | None = contacts.done("GET", f"/{made['id']}")["last_error"]
        return found

    wait_until(lambda: error() is not None, "the code was not taken")
    assert error() == "ntfy returned 403 Forbidden"
    browser = open_browser(post.gatebell, alice)
    page = browser.get(f"{post.gatebell.url}{PAGE}")
    assert "The code was not sent:</strong> <bdi>ntfy returned 403 Forbidden</bdi>." in page.text

    project = quote(make_project(post.gatebell, alice), safe="")
    channels = api_caller(post.gatebell, alice, f"/projects/{project}/notification_channels")
    channel = f"/{channels.done('POST', status=201, json=url)['id']}/test"
    assert channels.done("POST", channel)["error"] == "ntfy returned 403 Forbidden"
    receiver.answer = lambda _request: (200, {})
    assert channels.done("POST", channel)["delivered"] is True
    receiver.answer = lambda _request: (403, {})
    assert "what only insiders read" in channels.done("POST", channel)["error"]


NO_CONTACTS = (
    ({"type": "email", "address": "nobody"}, "email address"),
    ({"type": "fax", "address": "1"}, "type"),
    ({"type": "email"}, "address"),
    ({"type": "apprise", "address": "syslog://"}, "acts on the sending host"),
    ({"type": "apprise", "address": "fcm://p@apikey12/t/?keyfile=/k"}, "The URL refers to a file"),
    ({"type": "apprise", "address": "json://a\x00b"}, "URL"),
    ({"type": "apprise", "address": "json://a.example/?method=PUT"}, "The URL sets a method"),
    ({"type": "apprise", "address": "json://a.example/?+X-Admin=1"}, "The URL sets a header"),
    ({"type": "apprise", "address": "json://127.0.0.1:8080/a"}, "public addresses only"),
    ({"type": "apprise", "address": "forms://localhost/a"}, "cannot be reached: localhost is"),
    ({"type": "apprise", "address": "xml://[::1]/a"}, "cannot be reached"),
    ({"type": "apprise", "address": "ntfy://10.1.2.3/topic"}, "only OUTGOING_CONTACT_HOSTS can"),
    ({"type": "email", "address": "a@b.example", "label": "x" * 101}, "label"),
)


@pytest.mark.long
def test_invalid_contacts_are_rejected(post: Post) -> None:
    call = api_caller(post.gatebell, make_user(post.gatebell), "/user/contacts")
    for body, words in NO_CONTACTS:
        assert words in call.refused("POST", json=body), body
    assert call.done("GET") == []


def zone_options(page: str) -> set[str]:
    """Return the suggested time zones with their labels."""
    field = (
        page.partition('name="time_zone"')[2].partition("<datalist")[2].partition("</datalist>")[0]
    )
    return set(re.findall(r'value="([^"]+)">([^<]+)<', field))


@pytest.mark.long
def test_quiet_hours_are_stored_and_validated(post: Post) -> None:
    gatebell = post.gatebell
    alice = make_user(gatebell)
    call = api_caller(gatebell, alice, "/user/contacts/preferences")
    assert call.done("GET") == {"quiet_hours": None, "follow_ups": True}
    hours = {
        "starts_at": "22:00",
        "ends_at": "07:30",
        "time_zone": "Europe/Berlin",
        "critical_breaks_quiet_hours": False,
    }
    saved = call.done("PUT", json={"quiet_hours": hours, "follow_ups": False})
    assert saved == call.done("GET") == {"quiet_hours": hours, "follow_ups": False}
    assert call.done("PUT", json={"follow_ups": True})["quiet_hours"] == hours
    wrong_zones = [{"time_zone": each} for each in ("Nowhere", "localtime", "Factory")]
    for wrong in ({"starts_at": "25:00"}, {"ends_at": "22:00"}, *wrong_zones):
        call.refused("PUT", json={"quiet_hours": {**hours, **wrong}})

    browser = signed_in(gatebell, alice)
    page = browser.get(f"{gatebell.url}{PAGE}")
    assert 'value="22:00"' in page.text
    profile = browser.get(f"{gatebell.url}/-/user_settings/profile")
    assert zone_options(page.text) == zone_options(profile.text)
    page = press(browser, page, "/preferences", quiet_from="", quiet_until="")
    assert call.done("GET")["quiet_hours"] is None
    wrong_page = submit(browser, page, form_to(page, "/preferences"), quiet_from="soon")
    assert wrong_page.status_code == 422
    assert "Enter a time of day such as 22:00." in wrong_page.text


@pytest.mark.long
def test_a_channel_used_by_a_policy_cannot_be_deleted(post: Post) -> None:
    gatebell = post.gatebell
    alice = make_user(gatebell)
    path = make_project(gatebell, alice)
    given = ("--type", "email", "--address", "team@acme.example", "--label", "Team")
    channel = gatebell.cli("channels", "create", path, *given)
    gatebell.cli("escalations", "create", path, "--name", "Night", "--step", "0s channel:Team")
    at = f"/projects/{path.replace('/', '%2F')}/notification_channels/{channel['id']}"
    said = api_caller(gatebell, alice, at).refused("DELETE", status=409)
    assert "The escalation policy Night pages this channel." in said
    browser = signed_in(gatebell, alice)
    page = browser.get(f"{gatebell.url}/{path}/-/settings/channels")
    assert "The escalation policy Night pages" in press(browser, page, "/delete").text


def sent_by_email(gatebell: LiveGatebell) -> float:
    """Return the number of sent emails from the metrics."""
    text = gatebell.http().get(f"{gatebell.url}/metrics").text
    found = re.search(r'gatebell_page_messages_total\{channel="email",outcome="sent"\} (\S+)', text)
    return float(found[1]) if found else 0.0


@pytest.mark.long
def test_administrators_see_the_queue_and_metrics_count_it(post: Post) -> None:
    gatebell = post.gatebell
    before = sent_by_email(gatebell)
    body = {"type": "email", "address": "a7@pager.example"}
    api_caller(gatebell, make_user(gatebell)).done("POST", "/user/contacts", status=201, json=body)
    wait_until(lambda: sent_by_email(gatebell) > before, "a code is counted")
    root = make_user(gatebell, name="root", admin=True)
    page = signed_in(gatebell, root).get(f"{gatebell.url}/admin/queues")
    assert page.status_code == 200
    assert "Nothing is waiting." in page.text
    text = gatebell.http().get(f"{gatebell.url}/metrics").text
    assert 'gatebell_page_queue_messages{channel="email"} 0.0' in text
    assert 'gatebell_page_queue_age_seconds{channel="apprise"} 0.0' in text
    assert 'gatebell_page_failed_attempts_total{channel="apprise"} ' in text
