"""The pages of a project's webhooks, /<project>/-/settings/webhooks."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import urljoin

import pytest
import requests

from tests.support.accounts.people import make_project, make_user, signed_in
from tests.support.database.audit_log import list_events_with_subject
from tests.support.service.live import LiveGatebell
from tests.support.service.message_receiver import Receiver, running_receiver
from tests.support.wire.html_forms import form_to, form_with, submit

pytestmark = pytest.mark.one_database("sqlite")


@dataclass(frozen=True)
class Shop:
    """A project and the browser of its owner."""

    path: str
    url: str
    browser: requests.Session

    def get(self, path: str = "") -> requests.Response:
        return self.browser.get(f"{self.url}{path}")

    def press(self, page: requests.Response, what: str) -> requests.Response:
        """Submit the form with this target, and return the next page."""
        answer = submit(self.browser, page, form_to(page, what))
        assert answer.status_code == 302, answer.text
        return self.browser.get(urljoin(page.url, answer.headers["Location"]))

    def add(self, url: str, **values: str | None) -> requests.Response:
        page = self.get("/new")
        answer = submit(self.browser, page, form_with(page, "url"), url=url, **values)
        assert answer.status_code == 302, answer.text
        return self.browser.get(urljoin(page.url, answer.headers["Location"]))


@pytest.fixture
def shop(gatebell: LiveGatebell) -> Shop:
    alice = make_user(gatebell)
    path = make_project(gatebell, alice)
    at = f"{gatebell.url}/{path}/-/settings/webhooks"
    return Shop(path, at, signed_in(gatebell, alice))


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with running_receiver() as running:
        yield running


def secret_on(page: requests.Response) -> str:
    found = re.search(r"whsec_[A-Za-z0-9+/]+=*", page.text)
    assert found, page.text
    return found[0]


@pytest.mark.long
@pytest.mark.spec("K1")
def test_a_webhook_is_added_tested_rotated_paused_and_deleted(
    gatebell: LiveGatebell, shop: Shop, receiver: Receiver
) -> None:
    page = shop.add(f"{receiver.url}?key=hidden")
    secret = secret_on(page)
    assert "unencrypted" in page.text
    # The secret is shown only once.
    assert "whsec_" not in shop.browser.get(page.url).text

    page = shop.press(page, "/test")
    assert "Test message delivered: 204" in page.text
    assert receiver.of("webhook.tested")[0].verified_by(secret)
    page = shop.press(page, "/pause")
    assert "Nothing is sent until you resume" in page.text
    page = shop.press(page, "/rotate_secret")
    assert secret_on(page) != secret
    assert "also signs until" in page.text
    page = shop.press(page, "/resume")
    assert "Sending resumed." in page.text
    page = shop.press(page, "/delete")
    assert "was deleted" in page.text
    kinds = [each.kind for each in list_events_with_subject(gatebell, receiver.url)]
    assert kinds == [
        "webhook.removed",
        "webhook.changed",
        "webhook.secret_rotated",
        "webhook.changed",
        "webhook.created",
    ]


@pytest.mark.long
def test_a_delivery_is_shown_with_request_and_response_and_sent_again(
    shop: Shop, receiver: Receiver
) -> None:
    receiver.answer = lambda _request: (503, {})
    page = shop.add(receiver.url)
    page = shop.press(page, "/test")
    assert "the server returned 503 Service Unavailable" in page.text
    listed = shop.browser.get(f"{page.url}/deliveries")
    link = re.search(r'href="([^"]*/deliveries/\d+)"', listed.text)
    assert link, listed.text
    shown = shop.browser.get(urljoin(listed.url, link[1]))
    assert "webhook-timestamp" in shown.text
    assert "webhook-signature" not in shown.text
    assert "webhook.tested" in shown.text
    for state in ("waiting", "delivered"):
        empty = shop.browser.get(f"{page.url}/deliveries?state={state}")
        assert "No matching deliveries" in empty.text
    assert shop.browser.get(f"{page.url}/deliveries?state=lost").status_code == 400
    # Pages after the first have this link to newer deliveries.
    assert "webhook.tested" in shop.browser.get(f"{page.url}/deliveries?after=0").text


def test_the_form_shows_errors_of_a_webhook(shop: Shop) -> None:
    page = shop.get("/new")
    form = form_with(page, "url")
    for given, words in (
        ({"url": ""}, "Enter the URL"),
        ({"url": "ftp://a.example"}, "must begin with https://"),
        ({"url": "https://a.example", "labels": "x=~("}, "not a regular expression"),
    ):
        answer = submit(shop.browser, page, form, **given)
        assert answer.status_code == 422
        assert words in answer.text


def test_events_and_conditions_are_changed(shop: Shop) -> None:
    page = shop.add("https://hooks.invalid/", labels='team="db"', environments="prod, eu-*")
    assert 'value="prod, eu-*"' in page.text
    answer = submit(shop.browser, page, form_with(page, "url"), environments="", labels="")
    assert answer.status_code == 302
    assert "eu-*" not in shop.browser.get(page.url).text.replace(
        'placeholder="production, eu-*"', ""
    )
    assert "hooks.invalid" in shop.get().text


def test_a_webhook_of_another_project_is_not_found(gatebell: LiveGatebell, shop: Shop) -> None:
    alice = make_user(gatebell)
    other = make_project(gatebell, alice)
    number = shop.add("https://hooks.invalid/").url.rpartition("/")[2]
    at = f"{gatebell.url}/{other}/-/settings/webhooks/{number}"
    assert signed_in(gatebell, alice).get(at).status_code == 404
