"""Keys of an integration: reset, grace period of the old key, and snippets."""

import json
import re
import subprocess
import sys
from dataclasses import replace

import pytest
import requests
from sqlalchemy import update

from models import Integration
from tests.support.accounts.people import now
from tests.support.alerts.integration_pages import opened, snippets_on
from tests.support.alerts.senders import Endpoint, connect
from tests.support.database.stored import change, list_stored_alerts, list_stored_integrations
from tests.support.service.live import LiveGatebell
from tests.support.wire.html_forms import form_to, submit

pytestmark = pytest.mark.one_database("postgres")


def reset(
    gatebell: LiveGatebell, endpoint: Endpoint, overlap: str = "now"
) -> tuple[requests.Response, Endpoint]:
    """Reset the key on the page; return the next page and the endpoint with its new key."""
    browser, page = opened(gatebell, endpoint, "{id}/credentials")
    answer = submit(browser, page, form_to(page, "/reset_key"), overlap=overlap)
    assert answer.status_code == 302, answer.text
    again = browser.get(gatebell.url + answer.headers["Location"])
    return again, replace(endpoint, key=key_on(again))


def key_on(page: requests.Response) -> str:
    found = re.search(r'id="authorization-key">(gbk-\w+)<', page.text)
    assert found is not None
    return found[1]


@pytest.mark.long
@pytest.mark.spec("H5", "I2")
@pytest.mark.both_databases
def test_both_keys_are_accepted_during_the_overlap(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    page, renewed = reset(gatebell, endpoint, "1h")
    assert "Expiring" in page.text
    assert endpoint.key not in page.text
    assert (endpoint.send().status_code, renewed.send().status_code) == (200, 200)
    for overlap, hours in (("1h", 1), ("1d", 24), ("7d", 168), ("30d", 720)):
        if overlap != "1h":
            reset(gatebell, endpoint, overlap)
        assert overlap_left(gatebell, endpoint) == pytest.approx(3_600 * hours, abs=60)


def overlap_left(gatebell: LiveGatebell, endpoint: Endpoint) -> float:
    """Return the remaining grace period of the old key in seconds."""
    (row,) = list_stored_integrations(gatebell, endpoint.project)
    assert row.previous_key_expires_at is not None
    return (row.previous_key_expires_at - now()).total_seconds()


@pytest.mark.both_databases
@pytest.mark.spec("H5", "I2")
def test_the_old_key_is_rejected_after_the_overlap(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    _, renewed = reset(gatebell, endpoint, "1h")
    mine = update(Integration).where(Integration.id == endpoint.id)
    change(gatebell, mine.values(previous_key_expires_at=now()))
    assert (endpoint.send().status_code, renewed.send().status_code) == (401, 200)
    _, page = opened(gatebell, endpoint, "{id}/credentials")
    assert "Expiring" not in page.text


@pytest.mark.long
@pytest.mark.both_databases
@pytest.mark.spec("H5")
def test_the_last_use_of_each_key_is_recorded(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    _, renewed = reset(gatebell, endpoint, "1d")
    assert keys_used(gatebell, endpoint) == (False, False)
    endpoint.send()
    assert keys_used(gatebell, endpoint) == (False, True)
    renewed.send()
    assert keys_used(gatebell, endpoint) == (True, True)
    third = reset(gatebell, renewed, "1d")[1]
    assert keys_used(gatebell, endpoint) == (False, True)
    assert [each.send().status_code for each in (endpoint, renewed, third)] == [401, 200, 200]


def keys_used(gatebell: LiveGatebell, endpoint: Endpoint) -> tuple[bool, bool]:
    (row,) = list_stored_integrations(gatebell, endpoint.project)
    return row.key_last_used_at is not None, row.previous_key_last_used_at is not None


@pytest.mark.long
@pytest.mark.spec("H5")
def test_the_old_key_can_be_revoked_early(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    _, renewed = reset(gatebell, endpoint, "30d")
    browser, page = opened(gatebell, endpoint, "{id}/credentials")
    assert submit(browser, page, form_to(page, "/end_previous_key")).status_code == 302
    assert (endpoint.send().status_code, renewed.send().status_code) == (401, 200)
    for overlap in ("", "soon", "99d", "-1"):
        wrong = submit(browser, page, form_to(page, "/reset_key"), overlap=overlap)
        assert wrong.status_code == 422, overlap
    assert renewed.send().status_code == 200


@pytest.mark.long
def test_an_outdated_page_cannot_reset_the_key(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    browser, stale = opened(gatebell, endpoint, "{id}/credentials")
    _, renewed = reset(gatebell, endpoint, "7d")
    again = submit(browser, stale, form_to(stale, "/reset_key"), overlap="now")
    assert again.status_code == 422
    assert "The key has already been replaced" in again.text
    page = browser.get(stale.url)
    ending = form_to(page, "/end_previous_key")
    assert submit(browser, page, ending, seen="0" * 16).status_code == 409
    assert (endpoint.send().status_code, renewed.send().status_code) == (200, 200)


@pytest.mark.long
@pytest.mark.spec("H5", "I1", "I2")
@pytest.mark.parametrize("kind", ["http", "prometheus"])
def test_command_line_snippets_work_without_changes(gatebell: LiveGatebell, kind: str) -> None:
    endpoint = connect(gatebell, kind=kind, name="It's O'Brien's")
    texts = snippets_on(opened(gatebell, endpoint, "{id}/credentials")[1])
    curl = run("sh", "-c", texts["curl: one alert on the command line"])
    assert [each["iid"] for each in json.loads(curl)] == [1]
    python = run(sys.executable, "-c", texts["Python: standard library only"])
    assert [each["iid"] for each in json.loads(python)] == [1]
    (alert,) = list_stored_alerts(gatebell, endpoint.project)
    assert alert.events == 2


def run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    return done.stdout
