"""Tests of `/api/v4/projects/:id/alert_management_alerts`."""

import csv
from io import StringIO
from urllib.parse import quote

import pytest
import requests

from tests.support.accounts.api_caller import api_caller
from tests.support.accounts.people import alice
from tests.support.accounts.personal_tokens import make_token
from tests.support.alerts.senders import Endpoint, connect
from tests.support.database.stored import list_stored_alerts
from tests.support.service.live import LiveGatebell

pytestmark = pytest.mark.one_database("sqlite")


def api(
    gatebell: LiveGatebell,
    endpoint: Endpoint,
    path: str,
    *,
    scopes: str = "read_alerts",
    **given: object,
) -> requests.Response:
    at = f"/projects/{quote(endpoint.project, safe='')}/alert_management_alerts"
    script = api_caller(gatebell, alice(gatebell), at, scopes=scopes)
    return script("PUT" if given else "GET", path, json=given or None)


@pytest.mark.both_databases
@pytest.mark.spec("G5", "J5")
def test_alerts_are_listed_and_shown(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    endpoint.accepted(title="a", severity="low")
    for _ in range(2):
        endpoint.accepted(title="b", severity="high", description="words", extra={"x": [1]})
    listed = api(gatebell, endpoint, "").json()
    assert [alert["title"] for alert in listed] == ["b", "a"]
    assert [alert["title"] for alert in api(gatebell, endpoint, "?severity=low").json()] == ["a"]
    shown = api(gatebell, endpoint, "/2").json()
    assert shown.items() >= listed[0].items()
    assert shown["events"] == 2
    assert shown["description"] == "words"
    assert shown["details"]["extra.x.0"] == "1"
    assert shown["web_url"] == f"{gatebell.url}/{endpoint.project}/-/alerts/2"


@pytest.mark.both_databases
def test_the_list_of_alerts_links_to_its_next_page(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    for number in range(5):
        endpoint.accepted(title=f"a{number}")
    token = make_token(gatebell, alice(gatebell), scopes="read_api").clear
    reference = quote(endpoint.project, safe="")
    found = []
    url = f"{gatebell.url}/api/v4/projects/{reference}/alert_management_alerts?per_page=2"
    while url:
        answer = requests.get(f"{url}&access_token={token}", timeout=20)
        found += [alert["title"] for alert in answer.json()]
        url = answer.links.get("next", {}).get("url", "")
        assert token not in url
    assert found == ["a4", "a3", "a2", "a1", "a0"]
    forged = api(gatebell, endpoint, "?cursor=1")
    assert forged.status_code == 400


@pytest.mark.both_databases
@pytest.mark.spec("G5")
def test_the_status_of_an_alert_can_be_changed(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    endpoint.accepted(fingerprint="x")
    done = api(gatebell, endpoint, "/1", scopes="write_alerts", status="resolved")
    assert done.status_code == 200
    assert done.json()["status"] == "resolved"
    endpoint.accepted(fingerprint="x")
    refused = api(gatebell, endpoint, "/1", scopes="api", status="triggered")
    assert refused.status_code == 409
    assert "same fingerprint" in refused.json()["message"]
    unknown = api(gatebell, endpoint, "/1", scopes="api", status="closed")
    assert unknown.status_code == 400
    assert api(gatebell, endpoint, "/9", scopes="api", status="ignored").status_code == 404
    assert list_stored_alerts(gatebell, endpoint.project)[0].status == "resolved"


@pytest.mark.long
@pytest.mark.both_databases
@pytest.mark.spec("G5", "J5")
def test_all_alerts_can_be_exported_as_a_file(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    endpoint.post_json([{"title": f"a{number}", "severity": "low"} for number in range(600)])
    endpoint.accepted(title="=1+1", severity="high")
    answer = api(gatebell, endpoint, "/export.json")
    assert answer.headers["Content-Type"] == "application/json"
    assert "attachment" in answer.headers["Content-Disposition"]
    # The file is streamed, so its length is not known in advance.
    assert "Content-Length" not in answer.headers
    everything = answer.json()
    assert [row["iid"] for row in everything[:1]] == [601]
    assert len(everything) == 601
    low = api(gatebell, endpoint, "/export.json?severity=low&sort=oldest").json()
    assert {row["severity"] for row in low} == {"low"}
    assert low[0]["started_at"].endswith("Z")
    table = api(gatebell, endpoint, "/export.csv?severity=high")
    assert table.headers["Content-Type"].startswith("text/csv")
    (row,) = csv.DictReader(StringIO(table.text))
    assert (row["iid"], row["title"]) == ("601", "'=1+1")


def test_an_export_with_unknown_parameters_is_rejected(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    answer = api(gatebell, endpoint, "/export.csv?per_page=5&nope=1")
    assert answer.status_code == 400
    assert "per_page" in answer.text or "nope" in answer.text
    assert api(gatebell, endpoint, "/export.xml").status_code == 404
