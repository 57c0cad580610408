"""The pages of incidents: creation from an alert, changes, and comments."""

import re

import pytest
import requests

from domain.access.roles import Role
from tests.support.accounts.team import browser_of, give_role, person_for
from tests.support.alerts.incidents import create_incident, incident_script
from tests.support.alerts.monitoring import wait_until
from tests.support.alerts.senders import Endpoint, connect
from tests.support.service.live import LiveGatebell
from tests.support.wire.html_forms import form_to, submit

pytestmark = pytest.mark.one_database("sqlite")


class Pages:
    """The pages of a project's incidents, in the browser of a member with a role."""

    def __init__(self, endpoint: Endpoint, role: Role, gatebell: LiveGatebell) -> None:
        self.at = f"{endpoint.service}/{endpoint.project}/-"
        self.service = endpoint.service
        self.browser: requests.Session = browser_of(gatebell, endpoint.project, role)

    def get(self, path: str, status: int = 200) -> str:
        page = self.browser.get(f"{self.at}{path}")
        assert page.status_code == status, page.text
        return page.text

    def do(self, path: str, action: str, **values: str) -> str:
        """Submit a form of a page and return the page that follows."""
        page = self.browser.get(f"{self.at}{path}")
        answer = submit(self.browser, page, form_to(page, action), **values)
        assert answer.status_code == 302, answer.text
        return self.browser.get(self.service + answer.headers["Location"]).text


@pytest.mark.long
def test_an_assignee_is_paged_when_assigned_and_later(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    endpoint.accepted(title="Checkout is down")
    pages = Pages(endpoint, Role.DEVELOPER, gatebell)
    me = person_for(gatebell, Role.DEVELOPER).username
    pages.do("/alerts/1", "/-/incidents", alert="1")
    shown = pages.do("/incidents/1", "/1/assignees", add=me, page_now="y")
    if "has no confirmed contact" in shown:
        address = ("--type", "email", "--address", f"{me}@pager.example")
        gatebell.cli("contacts", "create", me, *address)
        shown = pages.do("/incidents/1", "/1/assignees", add=me, page_now="y")
    waits = f"A page is waiting to be sent to <strong><bdi>@{me}</bdi></strong>"
    assert waits in shown
    shown = pages.do("/incidents/1", "/1/page", user=me)
    # A second click does not page again.
    assert shown.count(waits) == 1
    report = pages.get("/on_call/reports?period=last_week")
    link = f'<a href="{pages.at.removeprefix(pages.service)}/incidents/1"><bdi>Checkout is down<'
    assert link in report
    assert f"paged by @{me}" in report
    assert "for 0 alerts and 1 incident" in report
    own = f"{pages.service}/-/on_call"
    wait_until(lambda: link in pages.browser.get(own).text, "the incident is listed")
    page = pages.do("/incidents/1", "/1/edit", title="Checkout", quiet_alerts="y")
    assert "do not page while the incident is acknowledged" in page
    script = incident_script(gatebell, endpoint.project)
    assert script.get("/1")["quiet_alerts"] is True


@pytest.mark.long
@pytest.mark.both_databases
@pytest.mark.spec("J2")
def test_a_developer_opens_an_incident_from_an_alert_and_closes_it(
    gatebell: LiveGatebell,
) -> None:
    endpoint = connect(gatebell)
    endpoint.accepted(title="Checkout is down", service="checkout", severity="high")
    pages = Pages(endpoint, Role.DEVELOPER, gatebell)
    me = person_for(gatebell, Role.DEVELOPER).username

    page = pages.browser.get(f"{pages.at}/incidents/new")
    wrong = submit(pages.browser, page, form_to(page, "/incidents/new"), title=" ", description="x")
    assert "Enter a title, such as Checkout is down." in wrong.text
    assert form_to(wrong, "/incidents/new").value("description") == "x"

    shown = pages.do("/alerts/1", "/-/incidents", alert="1")
    assert "Incident #1 created." in shown
    assert "<strong>Service:</strong> checkout" in shown
    assert f'href="{pages.at}/alerts/1"' in shown
    alert = pages.get("/alerts/1")
    assert "Create incident" not in alert
    assert 'href="/' + endpoint.project + '/-/incidents/1"' in alert

    pages.do("/incidents/1", "/incidents/1/severity", severity="critical")
    pages.do("/incidents/1", "/incidents/1/assignees", add=me)
    pages.do("/incidents/1", "/incidents/1/edit", title="No orders", description="*All* shops")
    pages.do("/incidents/1", "/incidents/1/notes", text="Rolling **back**")
    shown = pages.do("/incidents/1", "/incidents/1/status", status="resolved")
    assert "The incident is now resolved." in shown
    timeline = shown[shown.index('id="timeline"') :]
    entry = r'<li[^>]*>\s*<p><strong>@[^<]+</strong>(.*?)<span class="muted">'
    lines = [re.sub(r"<[^>]+>", "", line) for line in re.findall(entry, timeline, re.DOTALL)]
    assert [" ".join(line.split()) for line in lines] == [
        "resolved alert #1 with incident #1",
        "closed it and its 1 alert",
        "wrote",
        "changed the description",
        "changed the title from “Checkout is down” to “No orders”",
        f"assigned @{me}",
        "changed the severity from high to critical",
        "opened from alert #1",
    ]
    assert "<strong>back</strong>" in shown
    assert "<em>All</em> shops" in shown
    assert "resolved" in pages.get("/alerts?status=all")

    # The alert and the assignee are removed, and the alert is linked again.
    pages.do("/incidents/1", "/alerts/1/unlink")
    pages.do("/incidents/1", "/incidents/1/assignees", remove=me)
    shown = pages.do("/incidents/1", "/incidents/1/alerts", alert="#1")
    assert "Alert #1 linked." in shown
    assert "Alert 9 not found" in pages.do("/incidents/1", "/incidents/1/alerts", alert="9")


@pytest.mark.long
@pytest.mark.both_databases
def test_the_list_is_filtered_sorted_and_searched(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    for title, severity in (("Disk full", "low"), ("Café is closed", "critical"), ("c", "low")):
        create_incident(gatebell, endpoint.project, title=title, severity=severity)
    incident_script(gatebell, endpoint.project).put("/3", status="resolved")
    pages = Pages(endpoint, Role.DEVELOPER, gatebell)

    def titles(query: str) -> list[str]:
        return re.findall(r'/incidents/\d+"><bdi>(.*?)</bdi>', pages.get(f"/incidents{query}"))

    assert titles("") == ["Café is closed", "Disk full"]
    assert titles("?sort=oldest") == ["Disk full", "Café is closed"]
    assert titles("?status=all&sort=severity") == ["Café is closed", "c", "Disk full"]
    assert titles("?status=resolved") == ["c"]
    assert titles("?status=all&severity=low") == ["c", "Disk full"]
    assert titles("?search=cafe+clos&assignee=-") == ["Café is closed"]
    assert titles("?assignee=nobody") == []
    pages.get("/incidents?sort=title", status=400)


def test_incident_pages_offer_only_allowed_actions(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    endpoint.accepted()
    create_incident(gatebell, endpoint.project, alerts=[1])
    assert Pages(endpoint, Role.REPORTER, gatebell).get("/incidents/1", status=403)
    developer = Pages(endpoint, Role.DEVELOPER, gatebell)
    assert "Delete incident" not in developer.get("/incidents/1")
    assert "New rule" not in developer.get("/incidents/rules")
    owner = Pages(endpoint, Role.OWNER, gatebell)
    page = owner.do("/incidents/1", "/incidents/1/delete")
    assert "Incident #1 deleted. Its alerts are kept." in page
    owner.get("/incidents/1", status=404)
    owner.get("/alerts/1")


@pytest.mark.long
def test_comments_are_changed_by_their_author_and_by_maintainers(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    create_incident(gatebell, endpoint.project, title="Down")
    developer = Pages(endpoint, Role.DEVELOPER, gatebell)
    shown = developer.do("/incidents/1", "/incidents/1/notes", text="Frist", internal="y")
    assert "Internal</span>" in shown
    (note,) = re.findall(r"/incidents/1/notes/(\d+)/edit", shown)
    shown = developer.do("/incidents/1", f"/notes/{note}/edit", text="First")
    assert "<p>First</p>" in shown
    assert "edited" in shown
    other = person_for(gatebell, Role.MAINTAINER)
    give_role(gatebell, endpoint.project, other, Role.MAINTAINER)
    theirs = Pages(endpoint, Role.MAINTAINER, gatebell)
    theirs.do("/incidents/1", "/incidents/1/notes", text="Second")
    seen = developer.get("/incidents/1")
    assert len(re.findall(r"/incidents/1/notes/\d+/edit", seen)) == 1
    assert "Comment deleted." in theirs.do("/incidents/1", f"/notes/{note}/delete")
    assert "<p>First</p>" not in developer.get("/incidents/1")


@pytest.mark.long
@pytest.mark.both_databases
def test_a_maintainer_manages_incident_rules(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    pages = Pages(endpoint, Role.MAINTAINER, gatebell)
    rules = "/incidents/rules"
    page = pages.browser.get(f"{pages.at}{rules}")
    wrong = submit(pages.browser, page, form_to(page, rules), name="x", labels="team")
    assert wrong.status_code == 422
    assert "Character" in wrong.text
    values = {"severities": "critical", "environments": "prod*, staging", "labels": 'team="db"'}
    shown = pages.do(rules, rules, name="Production", close_when_resolved="y", **values)
    assert "severity critical; environment prod* or staging; team=&#34;db&#34;" in shown
    (rule,) = set(re.findall(rf"{rules}/(\d+)\"", shown))
    assert 'value="prod*, staging"' in pages.get(f"{rules}/{rule}")
    shown = pages.do(f"{rules}/{rule}", f"{rules}/{rule}", name="Live")
    assert "Live" in shown
    assert "was turned off" in pages.do(rules, f"{rules}/{rule}/turn_off")
    assert "was turned on" in pages.do(rules, f"{rules}/{rule}/turn_on")
    assert "was deleted" in pages.do(rules, f"{rules}/{rule}/delete")
    assert "No rules yet" in pages.get(rules)
