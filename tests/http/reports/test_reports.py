"""On-call reports on pages, in the API, in files and on the command line."""

import csv
import re
from calendar import day_name
from datetime import timedelta
from html import unescape
from io import StringIO
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

import pytest
from sqlalchemy import select, update

from domain.access.roles import Role
from models import Alert, EscalationPage, Project, User
from tests.http.pages.test_charts import tables_of
from tests.support.accounts.administration import find_user_id
from tests.support.accounts.api_caller import ApiCaller, api_caller
from tests.support.accounts.people import (
    alice,
    database_of,
    make_user,
    now,
    signed_in,
)
from tests.support.accounts.team import browser_of, give_role, person_for
from tests.support.alerts.senders import connect
from tests.support.database.audit_log import list_events_with_subject
from tests.support.service.live import LiveGatebell
from tests.support.wire.html_forms import form_to, submit
from web.pages.charts import format_seconds

pytestmark = pytest.mark.one_database("sqlite")


def quoted(path: str) -> str:
    return quote(path, safe="")


class Night:
    """A project with an alert that paged a developer, who acknowledged it."""

    def __init__(self, gatebell: LiveGatebell) -> None:
        self.gatebell, self.endpoint = gatebell, connect(gatebell)
        self.project = self.endpoint.project
        self.developer = person_for(gatebell, Role.DEVELOPER)
        give_role(gatebell, self.project, self.developer, Role.DEVELOPER)
        self.endpoint.accepted(title="=Disk | full", severity="critical")
        self.page(ago=timedelta(seconds=90))
        status = f"{self.at}/alert_management_alerts/1"
        self.caller(scopes="api")("PUT", status, json={"status": "acknowledged"})

    def page(self, *, ago: timedelta = timedelta()) -> None:
        """Page the developer for the first alert."""
        user_id = find_user_id(self.gatebell, self.developer)
        with database_of(self.gatebell) as session:
            project = select(Project.id).where(Project.path == self.project).scalar_subquery()
            is_first = Alert.iid == 1
            alert = session.scalars(
                select(Alert).where(Alert.project_id == project, is_first)
            ).one()
            page = EscalationPage(
                alert_id=alert.id,
                project_id=alert.project_id,
                user_id=user_id,
                round=1,
                step=2,
                paged_at=now() - ago,
            )
            session.add(page)

    @property
    def at(self) -> str:
        return f"/projects/{quoted(self.project)}"

    def caller(self, *, scopes: str = "read_alerts") -> ApiCaller:
        return api_caller(self.gatebell, self.developer, scopes=scopes)

    def events(self, subject: str) -> list[tuple[str, str]]:
        return [(e.kind, e.actor_name) for e in list_events_with_subject(self.gatebell, subject)]


@pytest.fixture
def night(gatebell: LiveGatebell) -> Night:
    return Night(gatebell)


@pytest.mark.long
@pytest.mark.both_databases
def test_a_report_is_the_same_in_all_interfaces(gatebell: LiveGatebell, night: Night) -> None:
    name, query = night.developer.username, urlencode({"period": "last_week"})
    call = night.caller()
    report = call.done("GET", f"{night.at}/on_call/report?{query}")
    (page,) = report["pages"]
    assert (page["user"], page["step"], page["answer"]["kind"]) == (name, 2, "acknowledged")
    assert (page["answer"]["by"], page["escalation_policy"]) == (name, None)
    assert 90 <= page["answer"]["seconds"] < 120
    assert report["totals"] == {
        "alerts": 1,
        "acknowledged": 1,
        "pages": 1,
        "people": 1,
        "paged_alerts": 1,
        "paged_incidents": 0,
        "answered": 1,
        "ended_by_themselves": 0,
        "unanswered": 0,
    }
    assert report["people"] == [{"user": name, "pages": 1, "acknowledged": 1, "nights": 0}]
    assert [each["severity"] for each in report["times"]] == [None, "critical"]
    assert (sum(report["hours"]), len(report["hours"])) == (1, 24)

    told = gatebell.cli("reports", "show", night.project, "--period", "last_week")
    assert told["totals"] == report["totals"]

    markdown = call("GET", f"{night.at}/on_call/report.md?{query}")
    assert markdown.headers["Content-Type"] == "text/markdown; charset=utf-8"
    assert "\\=Disk \\| full (critical)" in markdown.text
    assert f"acknowledged by @{name} after 1m3" in markdown.text
    (row,) = csv.DictReader(StringIO(call("GET", f"{night.at}/on_call/report.csv?{query}").text))
    assert (row["paged"], row["answered_by"]) == (f"'@{name}", name)
    assert row["title"] == "'=Disk | full"
    figures = call("GET", f"{night.at}/on_call/report/figures.csv?{query}").text
    assert f'"person","{name}","pages","1"' in figures

    browser = browser_of(gatebell, night.project, Role.DEVELOPER)
    shown = browser.get(f"{gatebell.url}/{night.project}/-/on_call/reports?{query}").text
    assert "1, to 1 person, for 1 alert" in shown
    assert f"acknowledged by @{name} after 1m3" in shown
    files = f"{gatebell.url}/{night.project}/-/on_call/report"
    assert browser.get(f"{files}.md?{query}").text.startswith("# On-call report of ")
    assert browser.get(f"{files}/figures.csv?{query}").text == figures

    (exported,) = browser.get(f"{gatebell.url}/{night.project}/-/alerts/export.json").json()
    assert (exported["acknowledged_by"], exported["pages"]) == (name, 1)


def test_the_page_of_a_report_shows_the_values_of_the_api(
    gatebell: LiveGatebell, night: Night
) -> None:
    for number in range(3):
        night.endpoint.accepted(title="<Noisy>", fingerprint=f"{number}")
    report = night.caller().done("GET", f"{night.at}/on_call/report?period=last_week")
    assert report["trend_unit"] == "day"
    assert sum(each["alerts"] for each in report["trend"]) == report["totals"]["alerts"] == 4
    hours = [sum(column) for column in zip(*report["weekday_hours"], strict=True)]
    assert hours == report["hours"]
    browser = browser_of(gatebell, night.project, Role.DEVELOPER)
    page = browser.get(f"{gatebell.url}/{night.project}/-/on_call/reports?period=last_week").text
    figures = re.findall(r"<dt>(.*?)</dt><dd><strong>(.*?)</strong><span>(.*?)</span>", page)
    assert [name for name, _, _ in figures] == [
        *("Alerts", "Pages", "Nights with a page", "Median time to acknowledge")
    ]
    assert [value for _, value, _ in figures][:2] == ["4", "1"]
    assert {change for _, _, change in figures} == {"no earlier data"}
    tables = tables_of(page)
    heat = tables["Pages to people by weekday and hour (UTC)"]
    assert [[int(row[day]) for row in heat.values()] for day in range(7)] == report["weekday_hours"]
    (median,) = {cells[0] for cells in tables["Time to acknowledge by day"].values()} - {"\u2013"}
    (expected,) = {each["acknowledge_median"] for each in report["trend"]} - {None}
    assert median == format_seconds(expected)
    link = f'<a href="/{night.project}/-/alerts?status=all&amp;search=%3CNoisy%3E">'
    assert f'{link}<bdi>&lt;Noisy&gt;</bdi><svg class="meter"' in page
    assert page.index("Noisy rules") < page.index("Load by person") < page.index("Show 1 page")


@pytest.mark.both_databases
def test_an_hour_of_the_heat_map_leads_to_its_pages(gatebell: LiveGatebell, night: Night) -> None:
    reader = make_user(gatebell)
    give_role(gatebell, night.project, reader, Role.DEVELOPER)
    with database_of(gatebell) as session:
        in_zone = update(User).where(User.username == reader.username)
        session.execute(in_zone.values(time_zone="Asia/Kathmandu"))
    for hours in (5, 30):
        night.page(ago=timedelta(hours=hours))
    browser = signed_in(gatebell, reader)
    page = browser.get(f"{gatebell.url}/{night.project}/-/on_call/reports?period=last_week").text
    cell = r'<td class="number"><a href="([^"]*)">(\d+)<'
    cells = [(unescape(href), int(count)) for href, count in re.findall(cell, page)]
    assert sum(count for _, count in cells) == 3
    for href, count in cells:
        filtered = browser.get(f"{gatebell.url}{href}").text
        assert filtered.count('data-label="Recipient"') == count
        assert f": {count} page" in filtered
        (whole,) = re.findall(r'<a href="([^"]*)"><span>To people on', filtered)
        assert browser.get(f"{gatebell.url}{unescape(whole)}").text.count('"Recipient"') == 3
    # The API and the CSV file have the same filter.
    query = dict(parse_qsl(urlsplit(cells[0][0]).query)) | {"time_zone": "Asia/Kathmandu"}
    report = night.caller().done("GET", f"{night.at}/on_call/report", params=query)
    assert (len(report["pages"]), report["earlier_pages"]) == (cells[0][1], 0)
    assert report["totals"]["pages"] == 3
    lines = night.caller()("GET", f"{night.at}/on_call/report.csv", params=query).text
    assert len(lines.splitlines()) == 1 + cells[0][1]
    query = {"period": "last_week", "hour": "24"}
    assert "hour" in night.caller().refused("GET", f"{night.at}/on_call/report", params=query)


def test_the_files_of_a_report_have_the_figures_of_the_page(
    gatebell: LiveGatebell, night: Night
) -> None:
    raise_earlier(night, 3, days=10)
    browser = browser_of(gatebell, night.project, Role.DEVELOPER)
    at, query = f"{gatebell.url}/{night.project}/-/on_call", "?period=last_week"
    page = browser.get(f"{at}/reports{query}").text
    rows = list(csv.reader(StringIO(browser.get(f"{at}/report/figures.csv{query}").text)))
    figures = {tuple(row[:3]): row[3] for row in rows}
    markdown = browser.get(f"{at}/report.md{query}").text
    lines = [line.strip("| ").split(" | ") for line in markdown.splitlines()]

    shown = re.findall(r"<dt>(.*?)</dt><dd><strong>(.*?)</strong><span>(.*?)</span>", page)
    assert len(shown) == 4
    for name, value, change in shown:
        (line,) = (each for each in lines if each[0] == name)
        assert line[1] == value
        is_duration = name.startswith("Median")
        unit = "seconds" if is_duration else "count"
        value_in_csv, before = (figures["summary", name, unit + end] for end in ("", "_before"))
        assert value == (format_seconds(float(value_in_csv)) if is_duration else value_in_csv)
        assert (before or "no acknowledgements") in change or before == "0"
    assert figures["summary", "Alerts", "count_before"] == "3"
    assert ["Figure", "Value", "The 7 days before"] in lines

    heat = tables_of(page)["Pages to people by weekday and hour (UTC)"]
    for day, name in enumerate(day_name):
        for hour, cells in heat.items():
            assert figures["weekday_hour", f"{name} {hour}", "pages"] == cells[day]
    for hour, cells in heat.items():
        assert ([hour, *cells] in lines) == any(map(int, cells))

    load = re.search(r'id="people".*?</table>', page, re.DOTALL)
    assert load
    people = re.findall(r">@(.*?)</th>(.*?)</tr>", load[0], re.DOTALL)
    assert [name for name, _ in people] == [night.developer.username]
    for name, html in people:
        cells = [re.sub("<.*?>", "", each).strip() for each in re.findall("<td.*?</td>", html)]
        assert [f"@{name}", *cells] in [
            [*each[:-1], each[-1].replace("-", "\u2013")] for each in lines
        ]
        kinds = ("pages", "acknowledged", "nights")
        assert [figures["person", name, kind] for kind in kinds] == cells[:3]

    for each in night.caller().done("GET", f"{night.at}/on_call/report{query}")["times"]:
        for field in ("acknowledge_median", "acknowledge_90th", "resolve_median", "resolve_90th"):
            found = figures["severity", each["severity"] or "all", field]
            assert found == ("" if each[field] is None else str(each[field]))


def raise_earlier(night: Night, number: int, *, days: int) -> None:
    """Receive alerts, and move them to the past."""
    for each in range(number):
        night.endpoint.accepted(title=f"{days} days ago", fingerprint=f"{days}.{each}")
    earlier = now() - timedelta(days=days)
    with database_of(night.gatebell) as session:
        project = select(Project.id).where(Project.path == night.project).scalar_subquery()
        session.execute(
            update(Alert)
            .where(Alert.project_id == project, Alert.title == f"{days} days ago")
            .values(started_at=earlier, created_at=earlier)
        )


def test_a_report_is_compared_with_the_period_before(gatebell: LiveGatebell, night: Night) -> None:
    raise_earlier(night, 3, days=10)
    browser = browser_of(gatebell, night.project, Role.DEVELOPER)
    page = browser.get(f"{gatebell.url}/{night.project}/-/on_call/reports?period=last_week").text
    assert "67% fewer than in the 7 days before (3)" in page
    assert "no acknowledgements in the 7 days before" in page


def test_an_unfinished_period_is_compared_with_the_same_part_of_the_period_before(
    gatebell: LiveGatebell, night: Night
) -> None:
    raise_earlier(night, 3, days=15)
    raise_earlier(night, 4, days=8)
    browser = browser_of(gatebell, night.project, Role.DEVELOPER)

    def read_changes(start: int, end: int) -> list[str]:
        days = (f"{now() + timedelta(days=each):%Y-%m-%d}" for each in (start, end))
        query = urlencode(dict(zip(("from", "until"), days, strict=True), period="own"))
        page = browser.get(f"{gatebell.url}/{night.project}/-/on_call/reports?{query}").text
        return re.findall(r"<dd><strong>.*?</strong><span>(.*?)</span>", page)

    same = "the same part of the 14 days before"
    assert read_changes(-2, 11)[0] == f"67% fewer than in {same} (3)"
    assert read_changes(-2, 11)[3] == f"no acknowledgements in {same}"
    assert set(read_changes(2, 15)) == {"no earlier data"}


@pytest.mark.long
@pytest.mark.both_databases
def test_a_report_of_a_group_covers_the_projects_visible_to_its_reader(
    gatebell: LiveGatebell, night: Night
) -> None:
    group = night.project.rpartition("/")[0]
    reader, owner = person_for(gatebell, Role.DEVELOPER), alice(gatebell)
    give_role(gatebell, group, owner, Role.OWNER)
    below = [f"{group}/team/old", f"{group}/team/quiet", f"{group}/empty/none"]
    for name in ("team", "empty"):
        gatebell.cli("groups", "create", f"{group}/{name}")
    for path in below:
        gatebell.cli("projects", "create", path)
    old = connect(gatebell, project=below[0])
    for number in range(3):
        old.accepted(title="Nobody looks", fingerprint=f"{number}")
    maintainer = api_caller(gatebell, owner)
    maintainer.done("POST", f"/projects/{quoted(below[0])}/archive", status=201)
    off = {"monitor_access_level": "disabled"}
    maintainer.done("PUT", f"/projects/{quoted(below[1])}", json=off)
    at, query = f"/groups/{group}/on_call/report", "?period=last_week"
    call = api_caller(gatebell, reader)
    # A member of only one project below cannot read the report of the group.
    give_role(gatebell, night.project, reader, Role.DEVELOPER)
    assert "Developer role" in call.refused("GET", f"{at}{query}", status=403)
    give_role(gatebell, group, reader, Role.DEVELOPER)

    report = call.done("GET", f"{at}{query}")
    assert (report["project"], report["group"]) == (None, group)
    assert (report["totals"]["alerts"], report["totals"]["pages"]) == (4, 1)
    assert [page["project"] for page in report["pages"]] == [night.project]
    (rule,) = report["noisy_rules"]
    assert (rule["project"], rule["proposal"]) == (below[0], "group")
    assert report["projects_left_out"] == [below[1]]
    told = gatebell.cli("reports", "show", group, "--period", "last_week")
    assert told["totals"] == report["totals"]
    assert f"| {night.project}#1 " in call("GET", f"{at}.md{query}").text.replace("\\", "")
    (row,) = csv.DictReader(StringIO(call("GET", f"{at}.csv{query}").text))
    assert (row["project_path"], row["alert"]) == (night.project, "1")
    figures = call("GET", f"{at}/figures.csv{query}").text
    assert f'"rule","Nobody looks","project","{below[0]}"' in figures

    address = f"{gatebell.url}/groups/{group}/-/on_call/reports{query}"
    page = signed_in(gatebell, owner).get(address).text
    assert f"/{night.project}/-/alerts/1" in page
    assert f"Not included: {below[1]}, because monitoring is turned off" in page
    # Rules cannot be added to an archived project.
    assert "New incident rule" not in page
    maintainer.done("POST", f"/projects/{quoted(below[0])}/unarchive", status=201)
    assert f"/{below[0]}/-/incidents/rules?" in signed_in(gatebell, owner).get(address).text

    moved = {"namespace": f"{group}/empty"}
    maintainer.done("PUT", f"/projects/{quoted(below[0])}/transfer", json=moved)
    of_team = api_caller(gatebell, reader, f"/groups/{quoted(f'{group}/team')}")
    assert of_team.done("GET", f"/on_call/report{query}")["totals"]["alerts"] == 0
    after = call.done("GET", f"{at}{query}")["noisy_rules"]
    assert [each["project"] for each in after] == [f"{group}/empty/old"]


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ({"from": "2020-01-01T00:00:00Z"}, "at most 90 days ago"),
        ({"until": "2020-01-01T00:00:00Z"}, "is required if"),
        ({"period": "last_year"}, "period"),
        ({"time_zone": "Mars/Base"}, "time zone from the IANA database"),
        ({"form": "2026-01-01"}, "form"),
    ],
)
def test_invalid_parameters_of_a_report_are_rejected(
    night: Night, query: dict[str, str], reason: str
) -> None:
    assert reason in night.caller().refused("GET", f"{night.at}/on_call/report", params=query)


@pytest.mark.long
def test_the_page_uses_days_in_the_time_zone_of_the_reader(
    gatebell: LiveGatebell, night: Night
) -> None:
    browser = browser_of(gatebell, night.project, Role.DEVELOPER)
    address = f"{gatebell.url}/{night.project}/-/on_call/reports"
    today = f"{now():%Y-%m-%d}"
    own = browser.get(f"{address}?period=own&from={today}&until={today}")
    assert "00:00</span> to " in own.text
    assert "=Disk | full" in own.text
    # A page without chosen days shows a hint and no error.
    for query, status in (("period=own", 200), ("period=own&from=today", 422)):
        missing = browser.get(f"{address}?{query}")
        told = "Choose the first day and the last day." in missing.text
        assert (missing.status_code, told) == (status, True)
    early = browser.get(f"{address}?period=own&from=2020-01-01&until=2020-01-02")
    assert (early.status_code, "at most 90 days ago" in early.text) == (422, True)


@pytest.mark.long
def test_a_proposal_prefills_its_form(gatebell: LiveGatebell, night: Night) -> None:
    give_role(gatebell, night.project, alice(gatebell), Role.OWNER)
    for title in ("Nobody looks", "Storm"):
        for _ in range(3):
            night.endpoint.accepted(title=title, fingerprint=None, hosts=[])
    browser = browser_of(gatebell, night.project, Role.MAINTAINER)
    at = f"{gatebell.url}/{night.project}/-"
    silence = browser.get(f"{at}/silences/new", params={"matchers": 'title="Nobody looks"'})
    assert form_to(silence, "/silences/new").value("matchers") == 'title="Nobody looks"'
    rule = browser.get(f"{at}/incidents/rules", params={"labels": 'title="x"', "name": "x"})
    form = form_to(rule, "/incidents/rules")
    assert (form.value("labels"), form.value("name")) == ('title="x"', "x")


@pytest.mark.long
@pytest.mark.both_databases
def test_a_user_on_call_writes_a_handoff_note(gatebell: LiveGatebell, night: Night) -> None:
    name, project = night.developer.username, night.project
    schedule = gatebell.cli(
        *("schedules", "create", project, "--name", "Primary", "--time-zone", "UTC"),
        *("--rotation", f"daily {name} 09:00"),
    )["id"]
    night.endpoint.accepted(title="Later")
    night.page()
    browser = browser_of(gatebell, project, Role.DEVELOPER)
    page = browser.get(
        f"{gatebell.url}/{project}/-/on_call/schedules/{schedule}/handover_notes/new"
    )
    form = form_to(page, "/handover_notes/new")
    draft = form.value("text")
    assert "- #1 \\=Disk \\| full: critical, acknowledged" in draft
    assert "- Alerts: 1, pages: 1, not yet answered: 1" in draft
    assert f"Disk \\| full, to @{name}, not yet answered" in draft
    left = submit(browser, page, form, text=f"{draft}\nThe *disk* is new.")
    shown = browser.get(gatebell.url + left.headers["Location"]).text
    assert "The <em>disk</em> is new." in shown

    call, notes = night.caller(), f"{night.at}/on_call/schedules/{schedule}/handover_notes"
    (note,) = call.done("GET", notes)
    assert (note["user"], note["schedule"]) == (name, "Primary")
    assert call.done("GET", f"{notes}/draft")["text"] == draft.replace("\r\n", "\n")
    report = call.done("GET", f"{night.at}/on_call/report?period=last_week")
    assert report["handover_notes"] == [note]
    page = browser.get(f"{gatebell.url}/{project}/-/on_call/reports?period=last_week")
    assert "The <em>disk</em> is new." in page.text
    call.refused("POST", notes, json={"text": "x"}, status=403)

    other = api_caller(gatebell, alice(gatebell))
    writer = night.caller(scopes="write_alerts")
    assert "Enter" in writer.refused("POST", notes, json={"text": " \n "})
    theirs = other.done("POST", notes, json={"text": "Mine"}, status=201)["id"]
    assert "other users' notes" in writer.refused("DELETE", f"{notes}/{theirs}", status=403)
    other.done("DELETE", f"{notes}/{theirs}", status=204)
    writer.done("DELETE", f"{notes}/{note['id']}", status=204)
    assert gatebell.cli("handover-notes", "list", project, "Primary")["handover_notes"] == []
    assert [kind for kind, _ in night.events("Primary")][:4] == [
        *("handover_note.removed", "handover_note.removed"),
        *("handover_note.created", "handover_note.created"),
    ]


@pytest.mark.long
def test_a_handoff_note_of_a_group_covers_its_projects(
    gatebell: LiveGatebell, night: Night
) -> None:
    group = night.project.rpartition("/")[0]
    maintainer = person_for(gatebell, Role.MAINTAINER)
    give_role(gatebell, group, maintainer, Role.MAINTAINER)
    call = api_caller(gatebell, maintainer, f"/groups/{group}")
    rotation = f"daily {maintainer.username} 09:00"
    new = {"name": "Team", "time_zone": "UTC", "rotations": [rotation]}
    schedule = call.done("POST", "/on_call/schedules", json=new, status=201)["id"]
    notes = f"/on_call/schedules/{schedule}/handover_notes"
    draft = call.done("GET", f"{notes}/draft")["text"]
    assert draft.startswith(f"## {night.project}\n\n**Open alerts**\n\n- #1 ")
    note = call.done("POST", notes, json={"text": "All quiet"}, status=201)
    shown = signed_in(gatebell, maintainer).get(
        f"{gatebell.url}/groups/{group}/-/on_call/schedules/{schedule}"
    )
    assert "All quiet" in shown.text
    report = night.caller().done("GET", f"{night.at}/on_call/report?period=last_week")
    assert report["handover_notes"] == [note]


@pytest.mark.long
@pytest.mark.both_databases
def test_a_team_writes_an_incident_document(gatebell: LiveGatebell, night: Night) -> None:
    name, call = night.developer.username, night.caller(scopes="api")
    call.done("POST", f"{night.at}/incidents", status=201, json={"title": "Outage", "alerts": [1]})
    comment = {"body": "Between us", "internal": True}
    call.done("POST", f"{night.at}/incidents/1/notes", status=201, json=comment)
    call.done("POST", f"{night.at}/incidents/1/notes", status=201, json={"body": "Rolled back"})

    document = f"{night.at}/incidents/1/document"
    template = call.done("GET", document)
    assert (template["saved"], template["revision"]) == (False, 0)
    headings = [line for line in template["text"].splitlines() if line.startswith("#")]
    assert headings == [
        *("# Outage", "## Summary", "## Impact", "## Timeline", "## What went well"),
        *("## What went wrong", "## Where we got lucky", "## Action items"),
    ]
    for told in (
        "Alert #1 \\=Disk \\| full started (critical)",
        f"Step 2 paged @{name} for alert #1",
        f"@{name} set alert #1 to acknowledged",
        f"@{name} wrote: Rolled back",
    ):
        assert f": {told}" in template["text"], template["text"]
    assert "Between us" not in template["text"]
    assert gatebell.cli("incident-documents", "show", night.project, "1")["text"]

    saved = call.done("PUT", document, json={"text": "# Learned\n\nAll", "revision": 0})
    assert (saved["saved"], saved["revision"], saved["updated_by"]) == (True, 1, name)
    stale = {"text": "Other", "revision": 0}
    assert f"by @{name} in the meantime" in call.refused("PUT", document, json=stale, status=409)
    assert call.done("PUT", document, json={"text": "# Learned\n\nAll"})["revision"] == 1
    assert call("GET", f"{document}.md").text == "# Learned\n\nAll\n"
    assert call.done("GET", f"{document}?template=true")["text"].startswith("# Outage\n")

    browser = browser_of(gatebell, night.project, Role.DEVELOPER)
    address = f"{gatebell.url}/{night.project}/-/incidents/1/document"
    page = browser.get(address)
    form = form_to(page, "/document")
    call.done("PUT", document, json={"text": "Theirs"})
    refused = submit(browser, page, form, text="Mine")
    assert (refused.status_code, "was changed by @" in refused.text) == (422, True)
    assert "<p>Theirs</p>" in refused.text
    again = form_to(refused, "/document")
    assert again.value("text") == "Mine"
    assert submit(browser, refused, again, text="Theirs and mine").status_code == 302
    assert "Theirs and mine" in browser.get(f"{address}.md").text
    assert [kind for kind, _ in night.events("Outage")] == [
        *["incident_document.changed"] * 3,
        *("incident.changed", "incident.changed", "incident.created"),
    ]
    assert browser_of(gatebell, night.project, Role.REPORTER).get(address).status_code in {403, 404}
