"""Tests of health checks and metrics of the running service, on each database."""

import json
from concurrent.futures import ThreadPoolExecutor

import pytest
import requests

from tests.support.service.live import LiveGatebell


def test_alive_and_ready(gatebell: LiveGatebell) -> None:
    for path in ("/healthz", "/readyz"):
        answer = requests.get(gatebell.url + path, timeout=10)
        assert answer.status_code == 200
        assert answer.json()["status"] == "ok"


@pytest.mark.long
@pytest.mark.one_database("postgres")
def test_metrics_are_sums_over_all_web_processes(gatebell: LiveGatebell) -> None:
    before = counted(gatebell, '/healthz",status="2xx"}')
    with ThreadPoolExecutor(8) as several:
        answers = several.map(
            lambda _: requests.get(f"{gatebell.url}/healthz", timeout=10).status_code, range(40)
        )
        assert set(answers) == {200}
    assert counted(gatebell, '/healthz",status="2xx"}') == before + 40


@pytest.mark.long
@pytest.mark.one_database("sqlite")
def test_metrics_include_rare_events_before_they_occur_and_process_memory(
    gatebell: LiveGatebell,
) -> None:
    told = requests.get(f"{gatebell.url}/metrics", timeout=10).text
    assert 'gatebell_database_pool_events_total{event="timed_out"} ' in told
    assert 'gatebell_http_requests_total{method="GET",route="(none)",status="5xx"} ' in told
    assert 'gatebell_alerts_total{outcome="refused"} ' in told
    assert 'gatebell_dropped_log_lines_total{reason="unread"} ' in told
    measured = dict(line.split() for line in told.splitlines() if line.startswith("process_"))
    # The server and its web processes share most of their memory.
    resident = float(measured["process_resident_memory_bytes"])
    proportional = float(measured["process_proportional_memory_bytes"])
    assert 100 * 2**20 < proportional < resident
    assert float(measured["process_cpu_seconds_total"]) > 0
    assert float(measured["process_start_time_seconds"]) > 1.7e9


@pytest.mark.long
@pytest.mark.one_database("sqlite")
def test_unknown_routes_share_one_label(gatebell: LiveGatebell) -> None:
    requests.get(f"{gatebell.url}/-/no/such/page?access_token=s3cret", timeout=10)
    text = requests.get(f"{gatebell.url}/metrics", timeout=10).text
    assert "/-/no/such/page" not in text
    assert "s3cret" not in text


@pytest.mark.one_database("sqlite")
def test_every_response_has_the_id_of_its_log_line(gatebell: LiveGatebell) -> None:
    answer = requests.get(
        f"{gatebell.url}/healthz?access_token=s3cret", headers={"X-Request-Id": "mine"}, timeout=10
    )
    request_id = answer.headers["X-Request-Id"]
    assert request_id != "mine"
    written = gatebell.logged_line(request_id)
    told = json.loads(written)
    assert (told["method"], told["route"], told["status"]) == ("GET", "/healthz", 200)
    assert "s3cret" not in written
    assert gatebell.log_text().count(request_id) == 1


def counted(gatebell: LiveGatebell, label: str) -> float:
    text = requests.get(f"{gatebell.url}/metrics", timeout=10).text
    found = [line for line in text.splitlines() if "requests_total{" in line and label in line]
    return sum(float(line.rpartition(" ")[2]) for line in found)
