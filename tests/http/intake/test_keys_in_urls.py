"""Keys in the URL, for senders that cannot set a header, where an integration accepts them."""

from dataclasses import replace

import pytest
import requests

from tests.support.accounts.people import alice, signed_in
from tests.support.alerts.integration_pages import address, opened
from tests.support.alerts.scripts import script_of
from tests.support.alerts.senders import Endpoint, connect
from tests.support.database.stored import list_stored_alerts
from tests.support.service.live import LiveGatebell
from tests.support.wire.html_forms import form_to, submit

pytestmark = pytest.mark.one_database("sqlite")


def accept(gatebell: LiveGatebell, endpoint: Endpoint) -> None:
    worker = script_of(gatebell, endpoint.project, "alert_management_integrations")
    changed = worker.put(f"/{endpoint.id}", accepts_key_in_url=True)
    assert changed.json()["accepts_key_in_url"] is True


def post(endpoint: Endpoint, query: str, **headers: str) -> requests.Response:
    given = {"Content-Type": "application/json", **headers}
    with requests.Session() as session:
        session.trust_env = False
        return session.post(endpoint.url + query, data=b'{"title": "a"}', headers=given, timeout=60)


@pytest.mark.both_databases
def test_the_key_in_the_url_is_accepted_only_when_allowed(
    gatebell: LiveGatebell,
) -> None:
    endpoint = connect(gatebell)
    refused = post(endpoint, f"?key={endpoint.key}")
    assert refused.status_code == 401
    assert "does not accept a key in the URL" in refused.json()["message"]
    accept(gatebell, endpoint)
    assert post(endpoint, f"?key={endpoint.key}").status_code == 200
    assert post(endpoint, "?key=wrong").status_code == 401
    assert post(endpoint, "").status_code == 401
    # A header takes precedence over the URL.
    assert post(endpoint, f"?key={endpoint.key}", Authorization="Bearer no").status_code == 401
    # A signature in the header is not a key.
    signed = post(endpoint, f"?key={endpoint.key}", Authorization="5f8c0d2e9b")
    assert signed.status_code == 200
    assert post(endpoint, "", Authorization="5f8c0d2e9b").status_code == 401
    assert len(list_stored_alerts(gatebell, endpoint.project)) == 1
    assert endpoint.key not in gatebell.log_text()


def test_alertmanager_paths_accept_the_key_in_the_url(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    accept(gatebell, endpoint)
    sender = replace(endpoint, url=endpoint.url.removesuffix(".json") + "/api/v2/alerts")
    assert post(sender, f"?key={endpoint.key}").status_code == 200


def test_redirects_and_errors_do_not_contain_the_key(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    accept(gatebell, endpoint)
    for url in (endpoint.url, endpoint.url.removesuffix(".json") + "/api/v2/alerts"):
        answer = requests.get(f"{url}?key={endpoint.key}", allow_redirects=False, timeout=60)
        assert answer.status_code == 405
        assert endpoint.key not in answer.text + str(answer.headers)
    assert endpoint.key not in gatebell.log_text()


@pytest.mark.parametrize("accepted", ["text/html", "application/json"])
def test_answers_for_mistyped_urls_do_not_contain_the_key(
    gatebell: LiveGatebell, accepted: str
) -> None:
    endpoint = connect(gatebell)
    urls = (
        endpoint.url.removesuffix(".json"),
        f"{endpoint.url}/",
        endpoint.url.removesuffix("n"),
        endpoint.url.replace("/alerts/notify/", "/ALERTS/NOTIFY/"),
    )
    for url in urls:
        for method in ("GET", "HEAD", "POST", "PUT", "OPTIONS"):
            answer = requests.request(
                method,
                f"{url}?key={endpoint.key}",
                headers={"Accept": accepted},
                allow_redirects=False,
                timeout=60,
            )
            told = answer.text + str(answer.headers)
            assert endpoint.key not in told, f"{method} {url}"


def test_the_credentials_page_shows_the_url_with_the_key(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    browser = signed_in(gatebell, alice(gatebell))
    url = address(gatebell, endpoint.project, f"{endpoint.id}/configure")
    page = browser.get(url)
    saved = submit(browser, page, form_to(page, "/configure"), accepts_key_in_url="y")
    assert saved.status_code == 302
    with_key = f"{endpoint.url}?key={endpoint.key}"
    _, shown = opened(gatebell, endpoint, "{id}/credentials")
    assert with_key in shown.text
    worker = script_of(gatebell, endpoint.project, "alert_management_integrations")
    assert worker.get(f"/{endpoint.id}/credentials")["url_with_key"] == with_key
    assert endpoint.key not in browser.get(url).text


@pytest.mark.parametrize("suffix", [".json", "/api/v2/alerts"])
def test_options_of_a_receiver_lists_post(gatebell: LiveGatebell, suffix: str) -> None:
    endpoint = connect(gatebell)
    url = endpoint.url.removesuffix(".json") + suffix
    allowed = requests.options(url, timeout=60).headers["Allow"]
    assert {each.strip() for each in allowed.split(",")} == {"POST", "OPTIONS"}
