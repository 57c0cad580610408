"""The gallery of services for contacts and channels, and the forms with their fields."""

import re
from html import unescape

import pytest
import requests

from tests.support.accounts.api_caller import api_caller
from tests.support.accounts.people import (
    Person,
    make_project,
    make_user,
    open_browser,
)
from tests.support.service.live import LiveGatebell
from tests.support.service.message_receiver import running_telephone
from tests.support.wire.html_forms import form_with, submit
from tests.support.wire.page_text import words

pytestmark = [pytest.mark.spec("J1"), pytest.mark.one_database("sqlite")]
PAGE = "/-/user_settings/contacts"
_BOT = "123456789:AAbbccddeeffgghhiijjkkllmmnnooppqqr"
_TOKEN = "tk_s3cr3ttokenofalice"


@pytest.fixture
def alice(gatebell: LiveGatebell) -> Person:
    return make_user(gatebell)


@pytest.fixture
def browser(gatebell: LiveGatebell, alice: Person) -> requests.Session:
    return open_browser(gatebell, alice)


def add(
    gatebell: LiveGatebell, browser: requests.Session, service: str, **values: str
) -> requests.Response:
    page = browser.get(f"{gatebell.url}{PAGE}?service={service}")
    return submit(browser, page, form_with(page, "label"), **values)


def own_contacts(gatebell: LiveGatebell, alice: Person) -> list[tuple[str, str]]:
    found = api_caller(gatebell, alice, "/user/contacts").done("GET")
    return [(each["label"], each["address"]) for each in found]


def test_the_gallery_is_searched_by_name_and_kind(
    gatebell: LiveGatebell, browser: requests.Session
) -> None:
    for text, found in (("telegr", "Telegram"), ("text messages", "Twilio SMS")):
        page = browser.get(f"{gatebell.url}{PAGE}", params={"search": text})
        assert f">{found}</span>" in page.text
        assert ">Slack</span>" not in page.text
    assert "No matching services" in browser.get(f"{gatebell.url}{PAGE}?search=fax").text
    assert browser.get(f"{gatebell.url}{PAGE}?service=fax").status_code == 404


def test_a_generated_ntfy_topic_is_a_link_and_a_qr_code(
    gatebell: LiveGatebell, browser: requests.Session, alice: Person
) -> None:
    topics = set()
    pages = [browser.get(f"{gatebell.url}{PAGE}?service=ntfy") for _ in range(2)]
    for page in pages:
        (topic,) = re.findall(r'href="https://ntfy\.sh/(gatebell-[a-z2-9]{24})"', page.text)
        assert f'value="{topic}"' in page.text
        assert '<svg class="qr"' in page.text
        topics.add(topic)
    assert len(topics) == 2
    assert submit(browser, pages[0], form_with(pages[0], "topic")).status_code == 302
    assert own_contacts(gatebell, alice) == [("ntfy", "ntfys://ntfy.sh/…")]


def test_an_error_is_beside_its_field_and_nothing_typed_is_lost(
    gatebell: LiveGatebell, browser: requests.Session
) -> None:
    page = add(gatebell, browser, "telegram", token="my token", chat="-100123", label="Night")
    assert page.status_code == 422
    text = unescape(page.text)
    beside = text.partition('id="token-error"')[2].partition("<input")[0]
    assert "This is not a bot token. Expected format: 123456:ABC…" in beside
    for value in ("my token", "-100123", "Night"):
        assert f'value="{value}"' in text
    assert re.search(r'<input[^>]*id="token"[^>]*type="password"', text)
    page = add(gatebell, browser, "gotify", server="http://10.1.2.3", token="AWp3MtrXjLMuVh9")
    beside = page.text.partition('id="server-error"')[2].partition("<input")[0]
    assert "only OUTGOING_CONTACT_HOSTS can allow this" in beside


def test_stored_secrets_are_not_shown_and_are_kept_if_empty(
    gatebell: LiveGatebell, browser: requests.Session, alice: Person
) -> None:
    assert add(gatebell, browser, "telegram", token=_BOT, chat="@night").status_code == 302
    call = api_caller(gatebell, alice, "/user/contacts")
    (made,) = call.done("GET")
    at = f"{gatebell.url}{PAGE}/{made['id']}"
    page = browser.get(at)
    assert _BOT not in page.text
    assert 'value="@night"' in page.text
    assert submit(browser, page, form_with(page, "chat"), chat="@daytime").status_code == 302
    page = browser.get(at)
    assert 'value="@daytime"' in page.text
    assert _BOT not in gatebell.log_text()


def test_a_stored_secret_is_not_sent_to_another_server(
    gatebell: LiveGatebell, browser: requests.Session, alice: Person
) -> None:
    values = {"server": "https://ntfy.example", "topic": "night", "token": _TOKEN}
    assert add(gatebell, browser, "ntfy", **values).status_code == 302
    (made,) = api_caller(gatebell, alice, "/user/contacts").done("GET")
    page = browser.get(f"{gatebell.url}{PAGE}/{made['id']}")
    moved = submit(browser, page, form_with(page, "topic"), server="https://evil.example")
    assert moved.status_code == 422
    assert "Enter an access token again, because the server has changed." in moved.text
    assert own_contacts(gatebell, alice) == [("ntfy", "ntfys://ntfy.example/…")]


def test_a_confirmed_contact_with_a_new_address_has_to_be_confirmed_again(
    gatebell: LiveGatebell, browser: requests.Session, alice: Person
) -> None:
    given = ("--type", "email", "--address", "alice@pager.example", "--label", "Mail")
    made = gatebell.cli("contacts", "create", alice.username, *given)
    at = f"{gatebell.url}{PAGE}/{made['id']}"
    page = browser.get(at)
    submit(browser, page, form_with(page, "address"), label="Night mail")
    call = api_caller(gatebell, alice, f"/user/contacts/{made['id']}")
    assert (call.done("GET")["label"], call.done("GET")["state"]) == ("Night mail", "ready")
    submit(browser, page, form_with(page, "address"), address="alice@other.example")
    changed = call.done("GET")
    assert changed["state"] == "unconfirmed"
    assert changed["address"] == "alice@other.example"
    assert "Confirm the contact first" in call.refused("POST", "/test")
    notice = "Contact saved. Confirm its new address."
    assert notice in words(browser.get(f"{gatebell.url}{PAGE}"))
    page = browser.get(at)
    submit(browser, page, form_with(page, "address"), label="Mail of the night")
    told = words(browser.get(f"{gatebell.url}{PAGE}"))
    assert "Contact saved." in told
    assert notice not in told


@pytest.mark.parametrize("address", ["ntfys://night", "jsons://hooks.example/a?format=markdown"])
def test_a_contact_with_a_new_name_stays_confirmed(
    gatebell: LiveGatebell, browser: requests.Session, alice: Person, address: str
) -> None:
    given = ("--type", "apprise", "--address", address, "--name", "Phone")
    made = gatebell.cli("contacts", "create", alice.username, *given)
    page = browser.get(f"{gatebell.url}{PAGE}/{made['id']}")
    assert submit(browser, page, form_with(page, "label"), label="Night").status_code == 302
    changed = api_caller(gatebell, alice, f"/user/contacts/{made['id']}").done("GET")
    assert (changed["label"], changed["state"]) == ("Night", "ready")


def test_a_value_has_a_maximum_length(gatebell: LiveGatebell, browser: requests.Session) -> None:
    for server in ("https://" + "a" * 3000, "https://" + "\u0e01" * 990):
        page = add(gatebell, browser, "ntfy", server=server, topic="night", token="x")
        assert page.status_code == 422
        assert '<svg class="qr"' not in page.text
    long = add(gatebell, browser, "ntfy", server="https://" + "a" * 3000, topic="night")
    assert "A value may have at most 1,000 characters." in long.text


@pytest.mark.long
def test_other_urls_are_changed_as_an_apprise_url_and_channels_stay_confirmed(
    gatebell: LiveGatebell, browser: requests.Session, alice: Person
) -> None:
    at = f"{gatebell.url}/{make_project(gatebell, alice)}/-/settings/channels"
    with running_telephone() as receiver:
        page = browser.get(f"{at}?service=apprise")
        url = f"ntfy://alice:s3cr3t@127.0.0.1:{receiver.port}/a"
        submit(browser, page, form_with(page, "address"), address=url, label="Room")
        listed = browser.get(at)
        (edit,) = re.findall(r'href="([^"]+/channels/\d+)"', listed.text)
        page = browser.get(gatebell.url + edit)
        assert "s3cr3t" not in page.text
        assert "Other (Apprise URL)" in page.text
        submit(browser, page, form_with(page, "address"), address=f"{receiver.contact_url}")
    assert "Ready" in browser.get(at).text
