"""The rate limit of an integration, on services with a low limit."""

from collections.abc import Iterator
from time import sleep, time

import pytest

from tests.support.alerts.integration_pages import opened, words
from tests.support.alerts.senders import connect, item, webhook
from tests.support.database.databases import ON_SQLITE
from tests.support.database.stored import list_stored_alerts, list_stored_deliveries
from tests.support.service.live import LiveGatebell, NewService, running

DAY = 86_400


@pytest.fixture(scope="module")
def limited(new_service: NewService) -> Iterator[LiveGatebell]:
    # Windows are aligned with the clock, and none may start during these tests.
    left = DAY - time() % DAY
    sleep(left if left < 300 else 0)
    live = new_service(
        only="app",
        ALERT_RATE_LIMIT="3/day",
        # Each process samples rejected deliveries separately.
        WEB_CONCURRENCY="1",
        REFUSED_DELIVERY_SAMPLES_PER_MINUTE="2",
        ALERT_BODY_LIMIT_BYTES="2000000",
    )
    with running(live):
        yield live


@pytest.mark.spec("L1", "I1")
def test_the_http_receiver_answers_429_over_the_limit(limited: LiveGatebell) -> None:
    endpoint = connect(limited)
    assert [endpoint.send(title=title).status_code for title in "abc"] == [200] * 3
    answer = endpoint.send(title="d")
    assert answer.status_code == 429
    assert 0 < int(answer.headers["Retry-After"]) <= DAY
    assert answer.json()["message"].startswith("429 Too Many Requests: This integration accepts 3")
    assert [alert.title for alert in list_stored_alerts(limited, endpoint.project)] == [
        "a",
        "b",
        "c",
    ]


@pytest.mark.long
def test_all_web_processes_share_the_limit(new_service: NewService) -> None:
    left = DAY - time() % DAY
    sleep(left if left < 300 else 0)
    with running(new_service(only="web", ALERT_RATE_LIMIT="3/day", WEB_CONCURRENCY="2")) as live:
        endpoint = connect(live)
        # Each request opens a new connection, which any process may accept.
        answers = [endpoint.send(title=str(number)) for number in range(12)]
    assert [answer.status_code for answer in answers] == [200] * 3 + [429] * 9
    observed = [int(answer.headers["RateLimit-Observed"]) for answer in answers]
    assert observed == list(range(1, 13))


@pytest.mark.spec("L1", "I11")
def test_the_alertmanager_receiver_answers_503_over_the_limit(limited: LiveGatebell) -> None:
    endpoint = connect(limited, kind="prometheus")
    body = webhook(item("a"))
    assert [endpoint.post(body).status_code for _ in range(3)] == [200] * 3
    answer = endpoint.post(body)
    assert answer.status_code == 503
    assert 0 < int(answer.headers["Retry-After"]) <= DAY


@pytest.mark.spec("L1")
@pytest.mark.parametrize(("kind", "over"), [("http", 429), ("prometheus", 503)])
def test_a_receiver_with_a_limit_sends_ratelimit_headers(
    limited: LiveGatebell, kind: str, over: int
) -> None:
    endpoint = connect(limited, kind=kind)
    body = webhook(item("a"))
    answers = [endpoint.post(body) for _ in range(3)]
    before = time()
    answers.append(endpoint.post(body))
    after = time()
    assert [answer.status_code for answer in answers] == [200, 200, 200, over]
    told = [
        [answer.headers[f"RateLimit-{name}"] for name in ("Limit", "Observed", "Remaining")]
        for answer in answers
    ]
    assert told == [["3", "1", "2"], ["3", "2", "1"], ["3", "3", "0"], ["3", "4", "0"]]
    last = answers[-1].headers
    told_at = int(last["RateLimit-Reset"]) - int(last["Retry-After"])
    assert before - 2 <= told_at <= after + 2


@pytest.mark.spec("L1")
@ON_SQLITE
def test_a_receiver_without_a_limit_sends_no_ratelimit_headers(gatebell: LiveGatebell) -> None:
    answer = connect(gatebell).send(title="a")
    assert answer.status_code == 200
    assert not [name for name in answer.headers if name.lower().startswith("ratelimit")]


@pytest.mark.spec("L1")
def test_each_integration_has_its_own_limit(limited: LiveGatebell) -> None:
    endpoint = connect(limited)
    other = connect(limited, endpoint.project, name="Other")
    assert {endpoint.send().status_code for _ in range(5)} == {200, 429}
    assert other.send().status_code == 200


@pytest.mark.spec("L1")
def test_invalid_requests_do_not_count_for_the_limit(limited: LiveGatebell) -> None:
    endpoint = connect(limited)
    for _ in range(5):
        assert endpoint.post(b"[").status_code == 400
        assert endpoint.post(b"{}", Authorization="Bearer wrong").status_code == 401
    assert endpoint.send().status_code == 200


@pytest.mark.spec("I19")
def test_the_body_limit_may_exceed_the_limit_of_forms(limited: LiveGatebell) -> None:
    endpoint = connect(limited)
    assert endpoint.post(b'{"a": "%s"}' % (b"x" * 1_900_000)).status_code == 200
    assert endpoint.post(b'{"a": "%s"}' % (b"x" * 2_000_000)).status_code == 413


@pytest.mark.long
def test_the_delivery_log_counts_rejections_that_are_not_stored(limited: LiveGatebell) -> None:
    endpoint = connect(limited)
    for _ in range(20):
        assert endpoint.post(b"{", Authorization="Bearer wrong").status_code == 401
    # The log keeps two rejections of each minute, and the minute may change during the test.
    assert 2 <= len(list_stored_deliveries(limited, endpoint.project)) <= 4
    # The count is written at most once a second, with the next request.
    sleep(1.1)
    endpoint.post(b"{")
    log = list_stored_deliveries(limited, endpoint.project)
    told = sum(1 + row.skipped for row in log if row.status_code == 401)
    assert told == 20
    _, page = opened(limited, endpoint, "{id}/deliveries")
    seen = words(page.text)
    assert "401 20 rejected with this status" in seen
    assert "similar requests)" in seen


@pytest.mark.long
@pytest.mark.spec("L1")
@pytest.mark.parametrize(("kind", "status"), [("http", 429), ("prometheus", 503)])
def test_the_page_shows_rejections_by_the_limit_once(
    limited: LiveGatebell, kind: str, status: int
) -> None:
    endpoint = connect(limited, kind=kind)
    body = b'{"title": "a"}' if kind == "http" else webhook(item("a"))
    answers = [endpoint.post(body).status_code for _ in range(13)]
    assert answers == [200] * 3 + [status] * 10
    sleep(1.1)
    assert endpoint.post(body).status_code == status
    _, page = opened(limited, endpoint, "{id}/deliveries")
    warning = "Deliveries exceeded the rate limit of this integration : 11,"
    assert words(page.text).count(warning) == 1
