"""Alert bodies at and over the size limit, compressed, chunked and aborted."""

import gzip
import json
import zlib
from collections.abc import Callable

import pytest

from tests.support.alerts.senders import (
    Endpoint,
    captured,
    connect,
    exchange_raw_bytes,
    item,
    request_head,
    webhook,
)
from tests.support.database.databases import ON_POSTGRES, ON_SQLITE
from tests.support.database.stored import (
    count_reports,
    get_newest_delivery,
    list_stored_alerts,
    list_stored_deliveries,
)
from tests.support.service.live import LiveGatebell

LIMIT = 1024 * 1024
#: Largest body size that is accepted, in bytes.
LARGEST = LIMIT - 1
TOO_LARGE = {
    "message": f"413 Request Entity Too Large: The body must be smaller than {LIMIT} bytes."
}


def body_of(size: int) -> bytes:
    """Return an alert with a body of this size in bytes."""
    start, end = b'{"title": "Large", "filling": "', b'"}'
    return start + b"x" * (size - len(start) - len(end)) + end


@pytest.mark.spec("I19")
def test_a_body_below_the_limit_is_stored_unchanged(
    gatebell: LiveGatebell,
) -> None:
    endpoint = connect(gatebell)
    assert endpoint.post(body_of(LARGEST)).json() == [{"iid": 1, "title": "Large"}]
    (delivery,) = list_stored_deliveries(gatebell, endpoint.project)
    assert delivery.size == LARGEST
    assert delivery.body == body_of(LARGEST)
    answer = endpoint.post(body_of(LIMIT))
    assert (answer.status_code, answer.json()) == (413, TOO_LARGE)
    # A declared length over the limit is rejected before the body is sent.
    head = request_head(endpoint, "Content-Length: 99999999999", "Content-Type: application/json")
    assert status_of(exchange_raw_bytes(endpoint, head)) == 413
    assert len(list_stored_alerts(gatebell, endpoint.project)) == 1


def chunked(endpoint: Endpoint, body: bytes, end: bytes = b"0\r\n\r\n") -> bytes:
    head = request_head(
        endpoint,
        "Transfer-Encoding: chunked",
        "Content-Type: application/json",
        f"Authorization: Bearer {endpoint.key}",
    )
    pieces = (body[start : start + 50_000] for start in range(0, len(body), 50_000))
    sent = b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces)
    return exchange_raw_bytes(endpoint, head + sent + end)


@pytest.mark.spec("I19")
@ON_SQLITE
def test_a_body_of_unknown_length_has_the_same_limit(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    assert status_of(chunked(endpoint, body_of(LARGEST))) == 200
    over = chunked(endpoint, body_of(LIMIT))
    assert status_of(over) == 413
    assert json.loads(over.rpartition(b"\r\n\r\n")[2]) == TOO_LARGE
    assert len(list_stored_alerts(gatebell, endpoint.project)) == 1


@ON_POSTGRES
def test_malformed_chunks_are_a_bad_request(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    for end in (b"zz\r\n", b"-5\r\n\r\n", b"5\r\nab\r\n0\r\n\r\n"):
        answer = chunked(endpoint, b'{"title": "Half"}', end)
        assert status_of(answer) == 400, end
        assert json.loads(answer.rpartition(b"\r\n\r\n")[2]) == {
            "message": "400 Bad Request: The request is not valid HTTP."
        }
    assert list_stored_alerts(gatebell, endpoint.project) == []


@ON_SQLITE
def test_an_invalid_content_length_is_a_bad_request(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    key = f"Authorization: Bearer {endpoint.key}"
    for lines in (
        ("Content-Length: -1",),
        ("Content-Length: +2",),
        ("Content-Length: 2x",),
        ("Content-Length: 2", "Content-Length: 3"),
        ("Content-Length: 2", "Transfer-Encoding: chunked"),
        ("Transfer-Encoding: gzip",),
    ):
        head = request_head(endpoint, *lines, "Content-Type: application/json", key)
        answer = exchange_raw_bytes(endpoint, head + b"{}")
        assert status_of(answer) in {400, 501}, (lines, answer)
    assert list_stored_alerts(gatebell, endpoint.project) == []


@ON_SQLITE
def test_bytes_beyond_the_declared_length_are_not_part_of_the_alert(
    gatebell: LiveGatebell,
) -> None:
    endpoint = connect(gatebell)
    head = request_head(
        endpoint,
        "Content-Length: 2",
        "Content-Type: application/json",
        f"Authorization: Bearer {endpoint.key}",
    )
    assert status_of(exchange_raw_bytes(endpoint, head + b'{}{"title": "smuggled"}')) == 200
    (delivery,) = list_stored_deliveries(gatebell, endpoint.project)
    assert delivery.body == b"{}"


@ON_POSTGRES
def test_an_aborted_body_opens_no_alert(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    head = request_head(
        endpoint,
        "Content-Length: 200",
        "Content-Type: application/json",
        f"Authorization: Bearer {endpoint.key}",
    )
    answer = exchange_raw_bytes(endpoint, head + b'{"title": "Half"}', hangs_up=True)
    assert status_of(answer) == 400
    assert list_stored_alerts(gatebell, endpoint.project) == []


def as_gzip(body: bytes) -> bytes:
    return gzip.compress(body, mtime=0)


@pytest.mark.spec("I1", "I19")
@ON_POSTGRES
def test_a_compressed_body_is_stored_uncompressed(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell, kind="prometheus")
    body = captured("01_firing_unicode_bearer.json")
    packed = {name: as_gzip(body) for name in ("gzip", "x-gzip", "GZIP")}
    for encoding, sent in {**packed, "deflate": zlib.compress(body)}.items():
        assert endpoint.post(sent, Content_Encoding=encoding).status_code == 200, encoding
    assert [each.body for each in list_stored_deliveries(gatebell, endpoint.project)] == [body] * 4


@pytest.mark.advisory("CVE-2025-62706")
@pytest.mark.spec("I19")
@pytest.mark.parametrize(("encoding", "pack"), [("gzip", as_gzip), ("deflate", zlib.compress)])
@ON_SQLITE
def test_the_limit_also_applies_to_the_uncompressed_body(
    gatebell: LiveGatebell, encoding: str, pack: Callable[[bytes], bytes]
) -> None:
    endpoint = connect(gatebell)
    packed = {"Content_Encoding": encoding}
    assert endpoint.post(pack(body_of(LARGEST)), **packed).status_code == 200
    assert endpoint.post(pack(body_of(LIMIT)), **packed).status_code == 413
    bomb = pack(b" " * 10 * LIMIT)
    assert len(bomb) < LIMIT
    answer = endpoint.post(bomb, **packed)
    assert (answer.status_code, answer.json()) == (413, TOO_LARGE)


@pytest.mark.spec("I1")
@ON_SQLITE
def test_a_gzip_body_may_have_several_members(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    members = b"".join(
        as_gzip(b'{"title": "Large"}'[start : start + 3]) for start in range(0, 18, 3)
    )
    answer = endpoint.post(members, Content_Encoding="gzip")
    assert answer.json() == [{"iid": 1, "title": "Large"}]
    # The limit applies to the sum of the uncompressed members.
    bomb = as_gzip(b" " * LIMIT) * 100
    assert len(bomb) < LIMIT
    answer = endpoint.post(bomb, Content_Encoding="gzip")
    assert (answer.status_code, answer.json()) == (413, TOO_LARGE)


@ON_POSTGRES
def test_a_damaged_gzip_body_is_a_bad_request(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    whole = as_gzip(b"{}")
    bodies = (b"", b"{}", whole[:-1], whole[:-4] + b"wrong", whole + b"more")
    for damaged in bodies:
        answer = endpoint.post(damaged, Content_Encoding="gzip")
        assert answer.status_code == 400, damaged
        assert "gzip" in answer.json()["message"]
    log = [
        (row.status_code, row.size) for row in list_stored_deliveries(gatebell, endpoint.project)
    ]
    assert log == [(400, len(damaged)) for damaged in bodies]


@pytest.mark.long
@pytest.mark.spec("I1")
def test_a_webhook_with_thousands_of_items_is_stored(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell, kind="prometheus")
    shell = json.loads(captured("17_prometheus_instance_down_2.json"))
    shell["alerts"] = [
        {"labels": {"alertname": f"a{number}"}, "startsAt": "2026-11-21T07:52:39Z"}
        for number in range(6_000)
    ]
    answer = endpoint.post(json.dumps(shell).encode())
    assert [each["iid"] for each in answer.json()] == list(range(1, 6_001))
    delivery = get_newest_delivery(gatebell, endpoint.project)
    assert (delivery.opened, count_reports(gatebell, delivery)) == (6_000, 6_000)


def status_of(answer: bytes) -> int | None:
    """Return the status code of a raw response, or None if there is none."""
    return int(answer[9:12]) if answer else None


@pytest.mark.spec("I19")
def test_a_large_alertmanager_group_opens_all_of_its_alerts(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell, kind="prometheus")
    text = "CrashLoopBackOff " * 30
    pods = (item(f"pod-{n}", annotations={"description": text}) for n in range(1_700))
    body = webhook(*pods)
    assert len(body) > LIMIT
    answer = endpoint.post(body)
    assert answer.status_code == 200, answer.text
    assert len(answer.json()) == 1_700
    assert len(list_stored_alerts(gatebell, endpoint.project)) == 1_700


@pytest.mark.spec("I19")
def test_the_limit_of_alertmanager_endpoints_is_eight_times_as_large(
    gatebell: LiveGatebell,
) -> None:
    endpoint = connect(gatebell, kind="prometheus")
    filling = len(webhook(item("a", annotations={"x": ""})))
    for size, status in ((8 * LIMIT - 1, 200), (8 * LIMIT, 413)):
        body = webhook(item("a", annotations={"x": "y" * (size - filling)}))
        assert len(body) == size
        assert endpoint.post(body).status_code == status
