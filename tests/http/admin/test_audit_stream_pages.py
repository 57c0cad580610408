"""Tests of `/admin/audit_streams`, the pages about destinations of the audit log."""

import re
from collections.abc import Iterator
from urllib.parse import urljoin

import pytest
import requests

from models import AuditStreamEntry
from tests.support.accounts.people import Person, database_of, now, signed_in, unique
from tests.support.database.audit_log import list_events_with_subject
from tests.support.service.live import LiveGatebell
from tests.support.service.message_receiver import Receiver, running_receiver
from tests.support.wire.html_forms import form_to, form_with, submit

pytestmark = pytest.mark.one_database("sqlite")
PAGE = "/admin/audit_streams"


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with running_receiver() as running:
        yield running


def add(gatebell: LiveGatebell, browser: requests.Session, url: str) -> requests.Response:
    page = browser.get(f"{gatebell.url}{PAGE}/new")
    answer = submit(browser, page, form_with(page, "url"), url=url)
    return browser.get(f"{gatebell.url}{answer.headers['Location']}")


def press(browser: requests.Session, page: requests.Response, what: str) -> requests.Response:
    answer = submit(browser, page, form_to(page, what))
    assert answer.status_code == 302, answer.text
    return browser.get(urljoin(page.url, answer.headers["Location"]))


@pytest.mark.long
@pytest.mark.spec("K1")
def test_a_destination_is_added_tested_rotated_paused_and_deleted(
    gatebell: LiveGatebell, admin: Person, receiver: Receiver
) -> None:
    browser = signed_in(gatebell, admin)
    page = add(gatebell, browser, f"{receiver.url}?key=hidden")
    secret = secret_on(page)
    assert "unencrypted" in page.text
    # The secret is shown only once.
    assert "whsec_" not in browser.get(page.url).text

    page = press(browser, page, "/test")
    assert "Test event delivered: 204" in page.text
    (tested,) = receiver.of("audit_stream.tested")
    assert tested.verified_by(secret)["data"]["details"]["author_name"] == admin.username

    page = press(browser, page, "/pause")
    assert "Paused" in page.text
    page = press(browser, page, "/rotate_secret")
    assert secret_on(page) != secret
    assert "also signs until" in page.text
    page = press(browser, page, "/resume")
    assert "Queued events are being sent." in page.text

    page = press(browser, page, "/delete")
    assert " deleted." in page.text
    kinds = [each.kind for each in list_events_with_subject(gatebell, receiver.url)]
    assert kinds == [
        "audit_stream.removed",
        "audit_stream.changed",
        "audit_stream.secret_rotated",
        "audit_stream.changed",
        "audit_stream.created",
    ]


@pytest.mark.long
def test_a_rejected_event_is_shown_until_it_is_sent_again(
    gatebell: LiveGatebell, admin: Person, receiver: Receiver
) -> None:
    browser = signed_in(gatebell, admin)
    page = add(gatebell, browser, receiver.url)
    stream_id = int(page.url.rpartition("/")[2])
    entry = AuditStreamEntry(
        stream_id=stream_id,
        payload={"event_name": "token.revoked", "created_at": "2026-12-01T00:00:00.000Z"},
        message_id=unique("refused"),
        created_at=now(),
        tries=10,
        set_aside_at=now(),
    )
    with database_of(gatebell) as session:
        session.add(entry)
    page = browser.get(page.url)
    assert "1 event not delivered because the receiver rejects it." in page.text
    counted = f'gatebell_audit_stream_set_aside_events{{stream="{stream_id}"}}'
    metrics = f"{gatebell.url}/metrics"
    assert f"{counted} 1.0\n" in browser.get(metrics).text
    page = press(browser, page, "/resume")
    assert "Queued events are being sent." in page.text
    assert "not delivered" not in page.text
    assert f"{counted} 0.0\n" in browser.get(metrics).text


def secret_on(page: requests.Response) -> str:
    found = re.search(r"whsec_[A-Za-z0-9+/]+=*", page.text)
    assert found, page.text
    return found[0]


def test_problems_of_a_destination_are_shown(gatebell: LiveGatebell, admin: Person) -> None:
    browser = signed_in(gatebell, admin)
    page = add(gatebell, browser, "http://127.0.0.1:2/")
    page = press(browser, page, "/test")
    assert "not delivered" in page.text
    listed = browser.get(gatebell.url + PAGE).text
    assert "http://127.0.0.1:2/" in listed
    never = submit(browser, page, form_with(page, "url"), url="http://10.1.2.3/")
    assert never.status_code == 422
    assert "10.1.2.3 is a private address" in never.text
    answer = submit(browser, page, form_with(page, "url"), url="http://127.0.0.1:1/")
    assert answer.status_code == 302
    page = browser.get(page.url)
    assert "<bdi>http://127.0.0.1:1/</bdi>" in page.text
    assert submit(browser, page, form_with(page, "url"), url="x").status_code == 422
    press(browser, page, "/delete")
    for path in ("/0", "/99999999999999999999", "/x"):
        assert browser.get(f"{gatebell.url}{PAGE}{path}").status_code == 404
    page = browser.get(f"{gatebell.url}{PAGE}/new")
    for url, words in (
        ("", "Enter the URL"),
        ("ftp://logs.example", "must begin with https://"),
        ("https://user:secret@logs.example/", "username or password"),
    ):
        answer = submit(browser, page, form_with(page, "url"), url=url)
        assert answer.status_code == 422
        assert words in answer.text
