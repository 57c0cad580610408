"""Incident rules: alerts open incidents, join them, and close them on recovery."""

from datetime import timedelta

import pytest

from domain.incidents.rule_decisions import STORM_SIZE
from tests.support.alerts.incidents import IncidentProject
from tests.support.alerts.senders import item


@pytest.mark.long
@pytest.mark.spec("J2")
def test_an_alert_that_matches_a_rule_opens_an_incident(project: IncidentProject) -> None:
    rule = project.rule(severities=["critical"], environments=["prod*"], labels={"team": "db"})
    met = {"severity": "critical", "platform_environment_name": "production", "team": "db"}
    for left_out in met:
        project.fire(f"without {left_out}", **{**met, left_out: "other"})
    project.send(
        item(
            "Disk full",
            labels={"alertname": "Disk full", "service": "db_main", "host": "db-1", **met},
            annotations={
                "description": "95% of /var\nis used",
                "platform_incident_markdown": "## What to do\n\n- free **space**",
            },
            generatorURL="http://prometheus.example/graph?g0.expr=disk_used+%3E+90",
        )
    )
    project.run()
    # The severity of "without severity" is an unknown word, which counts as critical.
    (unknown, incident) = project.incidents()
    assert unknown["title"] == "without severity"
    assert incident["title"] == "Disk full"
    assert incident["iid"] == 2
    assert incident["severity"] == "critical"
    assert incident["status"] == "triggered"
    assert incident["alerts"] == [4]
    assert incident["rule_id"] == rule["id"]
    assert incident["author"] is None
    assert incident["web_url"] == "http://localhost/acme/shop/-/incidents/2"
    assert incident["description"] == (
        "**Start time:** 21 November 2026, 7:52AM (UTC)  \n"
        "**Severity:** critical  \n"
        "**full_query:** `disk_used > 90`  \n"
        "**Service:** db_main  \n"
        "**Monitoring tool:** Prometheus  \n"
        "**Hosts:** db-1  \n"
        "**Description:** 95% of /var  \n"
        "is used  \n"
        "**Gatebell alert:** <http://localhost/acme/shop/-/alerts/4>"
        "\n\n---\n\n"
        "## What to do\n\n- free **space**"
    )
    assert project.timeline(2) == ["opened by the rule “all” from alert #4"]
    # GitLab's name of the annotation is accepted too.
    project.rule("every other")
    project.send(item("a", annotations={"gitlab_incident_markdown": "Call *Bob*"}))
    project.run()
    assert project.incidents()[-1]["description"].endswith("\n\n---\n\nCall *Bob*")


@pytest.mark.long
@pytest.mark.spec("J2")
def test_a_rule_that_is_off_opens_nothing_until_it_is_on_again(project: IncidentProject) -> None:
    first, second = project.rule("first"), project.rule("second", active=False)
    assert (first["active"], second["active"]) == (True, False)
    rule = f"/incident_rules/{first['id']}"
    assert project.api("PUT", rule, active=False)["active"] is False
    assert project.api("PUT", rule, severities=["critical"])["active"] is False
    project.fire("a")
    assert project.incidents() == []
    project.api("PUT", f"/incident_rules/{second['id']}", active=True)
    project.fire("b")
    (found,) = project.incidents()
    assert (found["title"], found["rule_id"]) == ("b", second["id"])


@pytest.mark.spec("J3")
def test_an_incident_is_closed_when_all_of_its_alerts_are_resolved(
    project: IncidentProject,
) -> None:
    project.rule(close_when_resolved=True)
    project.fire("a", "b")
    project.api("POST", "/incidents/1/alerts", code=409, alerts=[2])
    project.api("PUT", "/incidents/2", status="resolved")
    assert project.alert_status(2) == "resolved"
    project.fire("b")  # An alert that was closed with its incident opens a new incident.
    project.api("DELETE", "/incidents/3/alerts/3", code=204)
    project.api("POST", "/incidents/1/alerts", code=201, alerts=[3])

    project.recover("a")
    assert [each["status"] for each in project.incidents()] == [
        *("triggered", "resolved", "triggered")
    ]
    project.recover("b")
    first = project.incidents()[0]
    assert first["status"] == "resolved"
    assert first["resolved_at"]
    assert project.timeline(1)[-1] == "closed it: its alerts are resolved"


@pytest.mark.long
@pytest.mark.spec("J3")
def test_an_alert_that_fires_again_joins_the_open_incident(project: IncidentProject) -> None:
    rule = project.rule()
    project.fire("a")
    project.recover("a")
    (incident,) = project.incidents()
    # The rule does not close its incidents.
    assert (incident["status"], incident["close_when_resolved"]) == ("triggered", False)
    project.fire("a")
    (incident,) = project.incidents()
    assert incident["alerts"] == [1, 2]
    assert incident["alerts_count"] == 2
    assert project.timeline(1)[-1] == "added alert #2, received again"

    # A user reopens alert 2, which already belongs to the incident.
    project.recover("a")
    assert project.alert_status(2) == "resolved"
    project.api("PUT", "/alert_management_alerts/2", status="triggered")
    project.run()
    assert [each["alerts"] for each in project.incidents()] == [[1, 2]]

    # Alerts also join an incident that a user created.
    project.api("DELETE", f"/incident_rules/{rule['id']}", code=204)
    project.fire("b")
    project.api("POST", "/incidents", code=201, alerts=[3])
    project.recover("b")
    project.fire("b", "c")
    assert [each["alerts"] for each in project.incidents()] == [[1, 2], [3, 4]]


@pytest.mark.long
def test_an_alert_closed_with_its_incident_opens_a_new_incident(project: IncidentProject) -> None:
    project.rule()
    project.fire("a")
    project.api("PUT", "/incidents/1", status="resolved")
    assert project.alert_status(1) == "resolved"
    project.run()
    project.fire("a")
    assert [each["alerts"] for each in project.incidents()] == [[1], [2]]

    # The same happens when a user reopens the first alert.
    project.api("PUT", "/incidents/2", status="resolved")
    project.api("PUT", "/alert_management_alerts/1", status="triggered")
    project.run()
    assert [each["alerts"] for each in project.incidents()] == [[1], [2], [1]]


@pytest.mark.long
def test_an_alert_that_becomes_more_severe_is_matched_again(project: IncidentProject) -> None:
    project.rule("grave", severities=["critical"])
    project.fire("a", severity="low")
    assert project.incidents() == []
    project.fire("a", severity="critical")
    (incident,) = project.incidents()
    assert incident["severity"] == "critical"

    project.api("PUT", "/incidents/1", severity="medium")
    project.fire("b", severity="high")
    project.api("POST", "/incidents/1/alerts", code=201, alerts=[2])
    project.fire("b", severity="critical")
    assert project.incidents()[0]["severity"] == "critical"
    assert "changed the severity from medium to critical" in project.timeline(1)


@pytest.mark.long
def test_the_first_matching_rule_opens_the_incident(project: IncidentProject) -> None:
    project.rule("first", severities=["critical"], close_when_resolved=True)
    second = project.rule("second")
    project.fire("a", severity="low")
    (incident,) = project.incidents()
    assert (incident["rule_id"], incident["close_when_resolved"]) == (second["id"], False)


@pytest.mark.long
def test_a_changed_rule_applies_to_later_alerts(project: IncidentProject) -> None:
    rule = project.rule(close_when_resolved=True)
    project.fire("a")
    changed = project.api(
        "PUT", f"/incident_rules/{rule['id']}", severities="low", close_when_resolved=False
    )
    assert changed["name"] == "all"
    assert changed["severities"] == ["low"]
    project.fire("b", severity="critical")
    project.fire("c", severity="low")
    assert [each["close_when_resolved"] for each in project.incidents()] == [True, False]
    project.api("DELETE", f"/incident_rules/{rule['id']}", code=204)
    project.fire("d", severity="low")
    project.recover("a", "c")
    assert [(each["status"], each["rule_id"]) for each in project.incidents()] == [
        ("resolved", None),
        ("triggered", None),
    ]


@pytest.mark.long
def test_a_storm_of_alerts_is_collected_in_one_incident(project: IncidentProject) -> None:
    project.rule()
    names = [f"a{number}" for number in range(STORM_SIZE + 230)]
    project.fire(*names[:30], severity="low")
    project.fire(*names[30:], severity="high")
    found = project.incidents("&per_page=100")
    assert len(found) == STORM_SIZE
    assert [each["alerts_count"] for each in found] == [*[1] * (STORM_SIZE - 1), 231]
    assert len(found[-1]["alerts"]) == 100
    assert found[-1]["severity"] == "high"
    joined = "and 180 more, because the rule “all”"
    assert any(joined in said for said in project.timeline(STORM_SIZE))

    # Closing the incident changes all of its alerts in one step.
    project.api("PUT", f"/incidents/{STORM_SIZE}", status="resolved")
    assert project.alert_status(STORM_SIZE + 230) == "resolved"
    project.fire("one more")
    assert project.incidents("&per_page=100")[STORM_SIZE]["alerts_count"] == 1
    project.fire("another")
    assert project.incidents("&per_page=100")[STORM_SIZE]["alerts_count"] == 2

    project.now += timedelta(minutes=11)
    project.fire("later")
    assert project.incidents("&per_page=100")[STORM_SIZE + 1]["alerts_count"] == 1


@pytest.mark.long
def test_invalid_rules_are_rejected(project: IncidentProject) -> None:
    for values, said in (
        ({}, "`name` is missing"),
        ({"name": " "}, "The name must have 1 to 255 characters."),
        ({"name": "x", "severities": ["fatal"]}, '"fatal" is not a severity'),
        ({"name": "x", "labels": "team"}, "Character"),
        ({"name": "x", "labels": 'host=~"["'}, "regular expression"),
    ):
        answer = project.api("POST", "/incident_rules", code=400, **values)
        assert said in (answer.get("error") or answer["message"]), values
    project.rule("one")
    project.api("POST", "/incident_rules", code=409, name="one")
