"""Tests of `/api/v4/audit_streams`, destinations of the audit log, with the real worker."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
import requests

from tests.support.accounts.administration import find_last_event, get_shared_administrator
from tests.support.accounts.api_caller import api_caller
from tests.support.accounts.people import now, unique
from tests.support.service.live import LiveGatebell
from tests.support.service.message_receiver import Received, Receiver, running_receiver

pytestmark = pytest.mark.one_database("postgres")

ELSEWHERE = "https://logs.invalid/in?key=of-the-collector"


def call(
    gatebell: LiveGatebell, method: str, path: str = "", *, granted: str = "api", **body: Any
) -> requests.Response:
    """Send a request as the administrator."""
    script = api_caller(
        gatebell, get_shared_administrator(gatebell), "/audit_streams", scopes=granted
    )
    return script(method, path, json=body or None)


@pytest.fixture
def stream(gatebell: LiveGatebell) -> Iterator[dict[str, Any]]:
    """A paused destination, which receives no events."""
    made = call(gatebell, "POST", url=ELSEWHERE, paused=True).json()
    assert made["state"] == "paused"
    yield made
    call(gatebell, "DELETE", f"/{made['id']}")


@pytest.mark.long
@pytest.mark.both_databases
@pytest.mark.spec("K1")
def test_a_destination_receives_events_from_after_its_creation(gatebell: LiveGatebell) -> None:
    thing = unique("Wiki")
    with running_receiver() as receiver:
        answer = call(gatebell, "POST", url=receiver.url)
        assert answer.status_code == 201, answer.text
        made = answer.json()
        assert answer.headers["Cache-Control"] == "no-store"
        assert made["url"] == receiver.url
        assert made["secret"].startswith("whsec_")
        call_applications(gatebell, name=thing)
        mine = wait_for_subject(receiver, thing)
        event = f"/audit_events/{mine.event['data']['id']}"
        shown = api_caller(gatebell, get_shared_administrator(gatebell)).done("GET", event)
        assert call(gatebell, "DELETE", f"/{made['id']}").status_code == 204
    assert mine.verified_by(made["secret"])["data"] == shown
    assert "audit_stream.created" not in [each.type for each in receiver.received]


def call_applications(gatebell: LiveGatebell, *, name: str) -> None:
    body = {"name": name, "redirect_uri": "", "scopes": "api"}
    api_caller(gatebell, get_shared_administrator(gatebell)).done(
        "POST", "/applications", json=body, status=201
    )


def wait_for_subject(receiver: Receiver, subject: str) -> Received:
    for count in range(1, 1_000):
        arrived = receiver.wait_for(count, "application.registered")
        if found := [each for each in arrived if each.subject == subject]:
            return found[0]
    raise AssertionError


@pytest.mark.both_databases
def test_a_destination_is_listed_shown_changed_and_removed(
    gatebell: LiveGatebell, stream: dict[str, Any]
) -> None:
    shown = call(gatebell, "GET", f"/{stream['id']}").json()
    assert "secret" not in shown
    assert (shown["url"], shown["state"]) == (ELSEWHERE, "paused")
    listed = call(gatebell, "GET", "?per_page=100")
    assert stream["id"] in [each["id"] for each in listed.json()]
    assert stream["secret"] not in listed.text
    assert int(listed.headers["X-Total"]) == len(listed.json())

    new = f"https://{unique('logs')}.invalid/in"
    changed = call(gatebell, "PUT", f"/{stream['id']}", url=new)
    assert (changed.status_code, changed.json()["url"]) == (200, new)
    event = find_last_event(gatebell, new)
    assert event.kind == "audit_stream.changed"
    # The query can contain a secret of the destination.
    assert event.details["before"] == "https://logs.invalid/in"
    assert call(gatebell, "DELETE", f"/{stream['id']}").status_code == 204
    for method in ("GET", "PUT", "DELETE"):
        assert call(gatebell, method, f"/{stream['id']}").status_code == 404


@pytest.mark.both_databases
def test_a_secret_is_rotated_with_an_overlap(
    gatebell: LiveGatebell, stream: dict[str, Any]
) -> None:
    path = f"/{stream['id']}/rotate_secret"
    answer = call(gatebell, "POST", path)
    assert answer.status_code == 201
    assert answer.json()["secret"] != stream["secret"]
    assert answer.json()["previous_secret_expires_at"] is not None
    until = (now() + timedelta(days=3)).replace(microsecond=0)
    chosen = call(gatebell, "POST", path, previous_secret_expires_at=until.isoformat()).json()
    assert chosen["previous_secret_expires_at"] == f"{until:%Y-%m-%dT%H:%M:%S}.000Z"
    past = call(gatebell, "POST", path, previous_secret_expires_at="2026-01-01T00:00:00Z").json()
    assert past["previous_secret_expires_at"] is None
    for wrong in ("9999-01-01T00:00:00Z", "2026-01-01", "tomorrow", 5):
        refused = call(gatebell, "POST", path, previous_secret_expires_at=wrong)
        assert refused.status_code == 400
        assert "previous_secret_expires_at" in refused.text


@pytest.mark.spec("K1")
def test_a_test_event_is_sent_immediately_and_its_result_is_returned(
    gatebell: LiveGatebell,
) -> None:
    with running_receiver() as receiver:
        made = call(gatebell, "POST", url=receiver.url).json()
        call(gatebell, "PUT", f"/{made['id']}", paused=True)
        sent = call(gatebell, "POST", f"/{made['id']}/test").json()
        assert (sent["delivered"], sent["status"], sent["error"]) == (True, 204, None)
        (tested,) = receiver.of("audit_stream.tested")
        assert tested.verified_by(made["secret"])["data"]["author_id"] > 0
        receiver.answer = lambda _request: (302, {"Location": "http://127.0.0.1:1/"})
        sent = call(gatebell, "POST", f"/{made['id']}/test").json()
    assert (sent["delivered"], sent["status"]) == (False, 302)
    assert "redirects are not followed" in sent["error"]
    gone = call(gatebell, "POST", f"/{made['id']}/test").json()
    assert gone["error"] == "the connection was refused"
    call(gatebell, "DELETE", f"/{made['id']}")


@pytest.mark.both_databases
def test_an_invalid_url_of_a_destination_is_rejected(gatebell: LiveGatebell) -> None:
    urls: tuple[Any, ...] = (
        "",
        5,
        [],
        "logs.invalid",
        "ftp://x",
        "https://u:p@x",
        "https://x/\x00",
    )
    for url in urls:
        answer = call(gatebell, "POST", url=url)
        assert answer.status_code == 400, (url, answer.text)
        assert "url" in answer.json()["error"].lower(), url
    assert call(gatebell, "GET", "/99999999999999999999").status_code == 404
    assert call(gatebell, "PUT", "/0", paused="maybe").status_code in {400, 404}


@pytest.mark.long
def test_the_backlog_of_a_destination_is_part_of_the_metrics(
    gatebell: LiveGatebell, stream: dict[str, Any]
) -> None:
    call_applications(gatebell, name=unique("Wiki"))
    metrics = requests.get(f"{gatebell.url}/metrics", timeout=30).text
    label = f'{{stream="{stream["id"]}"}}'
    values = dict(line.rsplit(" ", 1) for line in metrics.splitlines() if label in line)
    assert float(values[f"gatebell_audit_stream_backlog_events{label}"]) >= 1
    assert f"gatebell_audit_stream_backlog_age_seconds{label}" in values
    assert float(values[f"gatebell_audit_stream_failing{label}"]) == 0
    assert float(values[f"gatebell_audit_stream_dropped_events_total{label}"]) == 0
    assert "of-the-collector" not in metrics
