"""Alert receivers: keys, the order of the checks, and the responses."""

import json

import pytest
import requests
from sqlalchemy import update

from models import Integration
from tests.support.alerts.senders import (
    Endpoint,
    basic,
    connect,
    exchange_raw_bytes,
    item,
    request_head,
    webhook,
)
from tests.support.database.databases import ON_POSTGRES, ON_SQLITE
from tests.support.database.stored import change, list_stored_alerts, list_stored_deliveries
from tests.support.service.live import LiveGatebell

RECEIVERS = ("http", "prometheus")
FIRING = {"http": b'{"title": "Disk full"}', "prometheus": webhook(item("Disk full"))}


@pytest.mark.spec("I1", "I2")
@pytest.mark.parametrize("kind", RECEIVERS)
def test_an_alert_is_answered_with_its_number_and_title(gatebell: LiveGatebell, kind: str) -> None:
    endpoint = connect(gatebell, kind=kind)
    answer = endpoint.post(FIRING[kind])
    assert answer.status_code == 200
    assert answer.headers["Content-Type"] == "application/json"
    assert answer.json() == [{"iid": 1, "title": "Disk full"}]


WRONG_KEY, NO_KEY = "The authorization key is wrong.", "The Authorization header has no key"
# tests/domain/alerts/test_receivers.py tests more spellings of the header.
REFUSED_HEADERS = (
    ("", "The authorization key is missing"),
    ("Bearer wrong", WRONG_KEY),
    ("Bearer {key}x", WRONG_KEY),
    ("Bearer {other}", WRONG_KEY),
    ("{key}", NO_KEY),
    ("{with_user}", NO_KEY),
    ("Basic /////w==", NO_KEY),
    ("Bearer \xe9\xff", WRONG_KEY),
    ("\xe9 {key}", NO_KEY),
)


@pytest.mark.spec("I2")
@ON_POSTGRES
def test_a_sender_without_the_key_is_rejected_with_a_hint(
    gatebell: LiveGatebell,
) -> None:
    endpoint = connect(gatebell)
    known = {
        "key": endpoint.key,
        "other": connect(gatebell, endpoint.project, name="Other").key,
        "with_user": basic("alice", endpoint.key),
    }
    for header, reason in REFUSED_HEADERS:
        answer = endpoint.post(b'{"title": "spam"}', Authorization=header.format(**known))
        assert answer.status_code == 401, header
        assert answer.headers["WWW-Authenticate"].startswith("Bearer ")
        assert "Basic " in answer.headers["WWW-Authenticate"]
        assert answer.json()["message"].startswith(f"401 Unauthorized: {reason}"), header
    assert list_stored_alerts(gatebell, endpoint.project) == []
    # The log stores no body of a sender without the key.
    log = {
        (row.status_code, row.body) for row in list_stored_deliveries(gatebell, endpoint.project)
    }
    assert log == {(401, None)}
    for header in (f"bearer  {endpoint.key}", basic("", endpoint.key)):
        assert endpoint.post(b"{}", Authorization=header).status_code == 200


@pytest.mark.spec("I1")
@ON_SQLITE
def test_receivers_ignore_the_slug_and_the_case_of_the_path(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    for slug in ("renamed", "100%25", "%C3%A9", "a.json"):
        url = endpoint.url.replace("/hook/", f"/{slug}/")
        assert at(endpoint, url).post(b"{}").status_code == 200
    shouted = endpoint.url.replace(endpoint.project, endpoint.project.upper())
    assert at(endpoint, shouted).post(b"{}").status_code == 200


@pytest.mark.spec("I1")
@pytest.mark.parametrize(
    ("kind", "short"), [("http", "alerts/notify"), ("prometheus", "prometheus/alerts/notify")]
)
def test_a_short_url_leads_to_the_oldest_endpoint_of_its_type(
    gatebell: LiveGatebell, kind: str, short: str
) -> None:
    other = connect(gatebell, kind="prometheus" if kind == "http" else "http")
    oldest = connect(gatebell, other.project, kind=kind, name="Oldest")
    younger = connect(gatebell, other.project, kind=kind, name="Younger")
    url = f"{gatebell.url}/{other.project}/{short}.json"
    assert at(oldest, url).post(FIRING[kind]).json() == [{"iid": 1, "title": "Disk full"}]
    assert at(younger, url).post(FIRING[kind]).status_code == 401
    assert at(other, url).post(FIRING[kind]).status_code == 401


@pytest.mark.spec("I1")
@ON_SQLITE
def test_the_type_of_the_integration_decides_how_the_body_is_read(gatebell: LiveGatebell) -> None:
    generic = connect(gatebell)
    short = f"{gatebell.url}/{generic.project}/prometheus/alerts/notify.json"
    assert at(generic, short).post(FIRING["prometheus"]).status_code == 404
    answer = generic.post(FIRING["prometheus"])
    assert answer.json() == [{"iid": 1, "title": "New: Alert"}]
    metrics = connect(gatebell, generic.project, kind="prometheus", name="Metrics")
    refused = metrics.post(b'{"title": "x", "alerts": []}')
    assert refused.status_code == 422
    assert refused.json()["missing"] == [
        "commonAnnotations",
        "commonLabels",
        "externalURL",
        "groupKey",
        "groupLabels",
        "receiver",
        "status",
        "version",
    ]


@pytest.mark.spec("H4", "I1")
@ON_POSTGRES
def test_an_integration_that_is_turned_off_rejects_alerts(gatebell: LiveGatebell) -> None:
    off = connect(gatebell, active=False)
    answer = off.post(b"{}")
    assert answer.status_code == 403
    assert answer.json() == {"message": "403 Forbidden: This integration is turned off."}
    assert list_stored_alerts(gatebell, off.project) == []


@pytest.mark.spec("I1", "I19")
@ON_SQLITE
def test_the_first_check_that_fails_is_the_answer(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell, kind="prometheus")
    text = {"Content_Type": "text/plain"}
    wrong = {"Authorization": "Bearer wrong"}
    too_large = b"[" * (1024 * 1024 + 1)
    nowhere = at(endpoint, endpoint.url[:-21] + "0123456789abcdef.json")
    assert nowhere.post(too_large, **wrong, **text).status_code == 413
    assert nowhere.post(b"[", **wrong, **text).status_code == 404
    assert endpoint.post(b"[", **wrong, **text).status_code == 401
    assert endpoint.post(b"[", **text).status_code == 415
    assert endpoint.post(b"[").status_code == 400
    assert endpoint.post(b"{}").status_code == 422
    assert endpoint.post(webhook()).status_code == 422


@pytest.mark.spec("I1", "I2")
@ON_POSTGRES
def test_a_malformed_compressed_body_does_not_skip_other_checks(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    for encoding, last in (("gzip", 400), ("br", 415)):
        packed = {"Content_Encoding": encoding}
        nowhere = at(endpoint, endpoint.url[:-21] + "0123456789abcdef.json")
        assert nowhere.post(b"nonsense", **packed).status_code == 404
        assert endpoint.post(b"nonsense", Authorization="", **packed).status_code == 401
        assert endpoint.post(b"nonsense", Content_Type="text/plain", **packed).status_code == 415
        assert endpoint.post(b"nonsense", **packed).status_code == last
    refused = [
        delivery.status_code for delivery in list_stored_deliveries(gatebell, endpoint.project)
    ]
    assert refused == [401, 415, 400, 401, 415, 415]


@pytest.mark.spec("H11", "I1")
def test_an_active_external_tool_turns_off_all_other_endpoints(
    gatebell: LiveGatebell,
) -> None:
    endpoint = connect(gatebell)
    pager = connect(gatebell, endpoint.project, kind="external", active=False)
    assert endpoint.post(b"{}").status_code == 200
    # Pages never activate both, but the database does not prevent it.
    change(gatebell, update(Integration).where(Integration.id == pager.id).values(active=True))
    answer = endpoint.post(b"{}")
    assert answer.status_code == 403
    assert "external on-call tool" in answer.json()["message"]
    assert pager.post(b"{}").status_code == 404


@pytest.mark.spec("I1")
@ON_POSTGRES
def test_json_media_types_are_accepted(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    types = (
        *("application/json", "application/json; charset=utf-8", "APPLICATION/JSON"),
        *("application/vnd.alert+json", "application/cloudevents+json;charset=utf-8"),
    )
    answers = {each: endpoint.post(b"{}", Content_Type=each).status_code for each in types}
    assert answers == dict.fromkeys(types, 200)


@pytest.mark.spec("I1")
@ON_SQLITE
def test_other_media_types_are_rejected_with_a_message(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    types = (
        *("", "text/plain", "application/x-www-form-urlencoded", "application/xml"),
        *("application/jsonp", "multipart/form-data; boundary=x", "text/x+json", "é", ";"),
    )
    answers = {each: endpoint.post(b"{}", Content_Type=each) for each in types}
    assert {each: found.status_code for each, found in answers.items()} == dict.fromkeys(types, 415)
    for answer in answers.values():
        assert answer.json()["message"].endswith("The Content-Type must be application/json.")
    first = list_stored_deliveries(gatebell, endpoint.project)[0]
    assert (first.status_code, first.body) == (415, b"{}")
    key = f"Authorization: Bearer {endpoint.key}"
    head = request_head(endpoint, key, "Content-Length: 2")
    assert exchange_raw_bytes(endpoint, head + b"{}").startswith(b"HTTP/1.1 415 ")
    assert list_stored_alerts(gatebell, endpoint.project) == []


@ON_POSTGRES
def test_receivers_never_set_cookies(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    answers = [
        endpoint.post(b"{}"),
        endpoint.post(b"["),
        endpoint.post(b"{}", Authorization=""),
        endpoint.post(b"{}", Cookie="gatebell_session=forged"),
    ]
    for answer in answers:
        assert "Set-Cookie" not in answer.headers
        assert "Cookie" not in answer.headers.get("Vary", "")


@ON_SQLITE
def test_another_method_is_rejected_with_the_allowed_one(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    answer = requests.put(endpoint.url, headers=endpoint.bearer, timeout=60)
    assert answer.status_code == 405
    assert "POST" in answer.headers["Allow"]
    assert answer.json() == {"message": "405 Method Not Allowed"}


@ON_SQLITE
def test_a_truncated_url_gets_the_same_hint_for_any_project(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    answers = {}
    for project in (endpoint.project, "nobody/nothing"):
        whole = endpoint.url.replace(f"/{endpoint.project}/", f"/{project}/")
        begin, slug, _ = whole.rsplit("/", 2)
        for url in (whole[:-5], whole[:-9], f"{begin}/{slug}/", f"{begin}/", begin, f"{whole}/"):
            answer = requests.post(url, json={"title": "x"}, headers=endpoint.bearer, timeout=60)
            answers[url] = (answer.status_code, answer.headers["Content-Type"], answer.text)
    assert len(answers) == 12
    ((status, media_type, text),) = set(answers.values())
    assert (status, media_type) == (404, "application/json")
    assert "Copy the whole URL, including .json, from the page View credentials" in text
    assert list_stored_alerts(gatebell, endpoint.project) == []


@ON_SQLITE
def test_neither_key_nor_body_is_logged(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    endpoint.post(json.dumps({"title": "not for the log"}).encode())
    endpoint.post(b"{", Authorization=f"Bearer {endpoint.key}x")
    assert endpoint.key not in gatebell.log_text()
    assert "not for the log" not in gatebell.log_text()


def at(endpoint: Endpoint, url: str) -> Endpoint:
    """Return the endpoint with the same key and another URL."""
    return Endpoint(endpoint.id, endpoint.project, url, endpoint.key, endpoint.service)
