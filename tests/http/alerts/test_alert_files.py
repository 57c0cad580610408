"""Exports of alert lists as CSV and JSON files."""

import csv
import json
import re
from io import StringIO
from urllib.parse import quote

import pytest

from domain.access.roles import Role
from tests.http.alerts.test_alert_lists import filtered, varied
from tests.support.accounts.people import alice, make_user, signed_in
from tests.support.accounts.personal_tokens import make_token
from tests.support.accounts.team import give_role
from tests.support.alerts.senders import connect
from tests.support.oauth.oauth_wire import machine
from tests.support.service.live import LiveGatebell

pytestmark = pytest.mark.one_database("postgres")

FORMULAS = (
    *("=1+1", "+1", "-1", "@SUM(A1)", "\t=1", " =1", "\u200b=cmd|' /C calc'!A0", '"=1"'),
    # Full-width characters, a direction mark, and separators of other languages.
    *("\uff1d1+1", "\u202e=1+1", "\u2060@SUM(A1)", "a;=1+1", "a\t=1+1"),
)
#: The beginning of a cell that a spreadsheet treats as a formula.
FORMULA = re.compile("[\\s\u200b\u202e\u2060\ufeff]*[=+@\uff1d\uff0b\uff0d\uff20-]")


def test_the_filtered_list_is_written_as_csv_and_no_cell_is_a_formula(
    gatebell: LiveGatebell,
) -> None:
    endpoint = connect(gatebell)
    for text in FORMULAS:
        endpoint.accepted(title=text, service=text, hosts=[text, "b"], description="x")
    endpoint.accepted(title='comma, "quote" 磁盘', platform_environment_name="a\nb")
    browser = signed_in(gatebell, alice(gatebell))
    address = f"{gatebell.url}/{endpoint.project}/-/alerts/export.csv"
    answer = browser.get(f"{address}?sort=oldest")
    assert answer.headers["Content-Type"].startswith("text/csv; charset=utf-8")
    assert answer.headers["Content-Disposition"].startswith('attachment; filename="alerts-shop-')
    text = answer.content.decode("utf-8")
    rows = list(csv.DictReader(StringIO(text, newline="")))
    assert len(rows) == len(FORMULAS) + 1
    for row in rows:
        for cell in row.values():
            assert not FORMULA.match(cell), cell
    # Quoted, so that another separator cannot start a new cell within the text.
    assert '"a;=1+1"' in text
    assert rows[-1]["title"] == 'comma, "quote" 磁盘'
    assert rows[-1]["environment"] == "a\nb"
    (found,) = csv.DictReader(StringIO(browser.get(f"{address}?search=comma").text))
    assert found["iid"] == str(len(FORMULAS) + 1)


@pytest.mark.long
@pytest.mark.both_databases
def test_the_filtered_list_is_written_as_json(gatebell: LiveGatebell) -> None:
    endpoint = varied(gatebell)
    browser = signed_in(gatebell, alice(gatebell))
    address = f"{gatebell.url}/{endpoint.project}/-/alerts/export.json"
    everything = json.loads(browser.get(address).content)
    assert [row["title"] for row in everything] == [f"a{number}" for number in range(44, -1, -1)]
    assert everything[0]["severity"] == "medium"
    assert everything[0]["started_at"] == "2026-11-23T00:00:00.000Z"
    low = json.loads(browser.get(f"{address}?severity=low&sort=events").content)
    assert [row["severity"] for row in low] == ["low"] * 7
    assert browser.get(f"{address}?search=nothing-like-it").json() == []
    assert browser.get(address.replace(".json", ".xml")).status_code == 404


@pytest.mark.both_databases
def test_years_before_1000_are_written_with_four_digits(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    endpoint.accepted(title="Old", start_time="0026-01-02T03:04:05Z")
    browser = signed_in(gatebell, alice(gatebell))
    address = f"{gatebell.url}/{endpoint.project}/-/alerts"
    (row,) = browser.get(f"{address}/export.json").json()
    assert row["started_at"] == "0026-01-02T03:04:05.000Z"
    assert 'datetime="0026-01-02T03:04:05Z"' in browser.get(address).text


@pytest.mark.long
@pytest.mark.parametrize("reader", ["patient", "hangs up"])
def test_exports_release_their_database_connections(gatebell: LiveGatebell, reader: str) -> None:
    endpoint = filtered(gatebell)
    browser = signed_in(gatebell, alice(gatebell))
    address = f"{gatebell.url}/{endpoint.project}/-/alerts"
    # More than twice the number of connections that all processes together may open.
    for _ in range(40):
        is_lazy = reader == "hangs up"
        with browser.get(f"{address}/export.json", stream=is_lazy, timeout=30) as answer:
            assert answer.status_code == 200
    assert {browser.get(address).status_code for _ in range(6)} == {200}


@pytest.mark.long
def test_file_and_chart_of_all_projects_include_only_readable_alerts(
    gatebell: LiveGatebell,
) -> None:
    person = make_user(gatebell, name="watcher")
    mine, seen = connect(gatebell), connect(gatebell)
    give_role(gatebell, mine.project, person, Role.DEVELOPER)
    give_role(gatebell, seen.project, person, Role.REPORTER)
    # The export writes this number of alerts in more than one chunk.
    mine.post_json([{"title": f"a{number}", "severity": "low"} for number in range(501)])
    mine.accepted(title="=1+1", severity="high")
    seen.accepted(title="not for reporters")
    browser, address = signed_in(gatebell, person), f"{gatebell.url}/-/alerts"
    page = browser.get(address).text
    assert "502 alerts in 14 days" in page
    for link in (
        "/-/alerts/export.csv?severity=high",
        f"/-/alerts/export.json?project={seen.project}",
    ):
        query = link.partition("?")[2]
        assert f'href="{link}" download' in browser.get(f"{address}?{query}").text.replace(
            "%2F", "/"
        )
    assert "0 alerts in 14 days" in browser.get(f"{address}?project={seen.project}").text
    (row,) = csv.DictReader(StringIO(browser.get(f"{address}/export.csv?search=1").text))
    assert (row["project_path"], row["iid"], row["title"]) == (mine.project, "502", "'=1+1")
    token = {"PRIVATE-TOKEN": make_token(gatebell, person, scopes="read_alerts").clear}
    group = quote(mine.project.rpartition("/")[0], safe="")
    for url, asks in (
        (f"{address}/export.json", browser.get),
        (f"{gatebell.url}/api/v4/alert_management_alerts/export.json", machine(gatebell).get),
    ):
        answer = asks(f"{url}?sort=oldest", headers=token)
        assert 'filename="alerts-all-projects-' in answer.headers["Content-Disposition"]
        rows = answer.json()
        assert len({(row["project_path"], row["iid"]) for row in rows}) == len(rows) == 502
        assert asks(f"{url}?project={seen.project}&nope=1", headers=token).status_code == 400
    refused = f"{gatebell.url}/api/v4/groups/{group}/alert_management_alerts/export.csv"
    # A role in a project gives no access to the list of its group.
    assert machine(gatebell).get(refused, headers=token).status_code in {403, 404}
    give_role(gatebell, mine.project.rpartition("/")[0], person, Role.DEVELOPER)
    (row,) = csv.DictReader(
        StringIO(machine(gatebell).get(f"{refused}?severity=high", headers=token).text)
    )
    assert row["title"] == "'=1+1"
