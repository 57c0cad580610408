"""The endpoints of incidents: name, method, path, parameters."""

from tests.support.wire.group_endpoints import PAGES, TOKEN

INCIDENTS_AT = "/api/v4/{project}/incidents"
NOTES_AT = f"{INCIDENTS_AT}/{{id}}/notes"
DOCUMENT_AT = f"{INCIDENTS_AT}/{{id}}/document"
ALERTS_AT = f"{INCIDENTS_AT}/{{id}}/alerts"
RULES_AT = "/api/v4/{project}/incident_rules"
INCIDENT = (
    *("title", "description", "severity", "assignees", "assignees[]", "assignee_ids"),
    *("close_when_resolved", "quiet_alerts", "page_assignees"),
)
RULE = (
    *("name", "severities", "environments", "services", "labels", "close_when_resolved"),
    *("open_when_silenced", "quiet_alerts", "responders"),
    *("active", "severities[]", "environments[]"),
)

INCIDENT_ENDPOINTS: tuple[tuple[str, str, str, tuple[str, ...]], ...] = (
    (
        "api_v4.incidents.index",
        "GET",
        INCIDENTS_AT,
        (*PAGES, "status", "severity", "assignee", "alert", "search"),
    ),
    ("api_v4.incidents.create", "POST", INCIDENTS_AT, (*INCIDENT, "alerts", "alerts[]")),
    ("api_v4.incidents.show", "GET", f"{INCIDENTS_AT}/{{id}}", TOKEN),
    ("api_v4.incidents.change", "PUT", f"{INCIDENTS_AT}/{{id}}", (*INCIDENT, "status")),
    ("api_v4.incidents.page", "POST", f"{INCIDENTS_AT}/{{id}}/page", ("users", "users[]")),
    ("api_v4.incidents.delete", "DELETE", f"{INCIDENTS_AT}/{{id}}", TOKEN),
    ("api_v4.incident_alerts.index", "GET", ALERTS_AT, PAGES),
    ("api_v4.incident_alerts.create", "POST", ALERTS_AT, ("alerts", "alerts[]")),
    ("api_v4.incident_alerts.delete", "DELETE", f"{ALERTS_AT}/{{id}}", TOKEN),
    (
        "api_v4.incident_timeline.surroundings",
        "GET",
        f"{INCIDENTS_AT}/{{id}}/surroundings",
        TOKEN,
    ),
    ("api_v4.incident_timeline.index", "GET", f"{INCIDENTS_AT}/{{id}}/timeline", PAGES),
    ("api_v4.incident_documents.show", "GET", DOCUMENT_AT, ("template",)),
    ("api_v4.incident_documents.download", "GET", f"{DOCUMENT_AT}.md", TOKEN),
    ("api_v4.incident_documents.change", "PUT", DOCUMENT_AT, ("text", "revision")),
    ("api_v4.incident_notes.index", "GET", NOTES_AT, (*PAGES, "activity_filter")),
    ("api_v4.incident_notes.create", "POST", NOTES_AT, ("body", "internal", "confidential")),
    ("api_v4.incident_notes.show", "GET", f"{NOTES_AT}/{{id}}", TOKEN),
    (
        "api_v4.incident_notes.change",
        "PUT",
        f"{NOTES_AT}/{{id}}",
        ("body", "internal", "confidential"),
    ),
    ("api_v4.incident_notes.delete", "DELETE", f"{NOTES_AT}/{{id}}", TOKEN),
    ("api_v4.incident_rules.index", "GET", RULES_AT, PAGES),
    ("api_v4.incident_rules.create", "POST", RULES_AT, RULE),
    ("api_v4.incident_rules.show", "GET", f"{RULES_AT}/{{id}}", TOKEN),
    ("api_v4.incident_rules.change", "PUT", f"{RULES_AT}/{{id}}", RULE),
    ("api_v4.incident_rules.delete", "DELETE", f"{RULES_AT}/{{id}}", TOKEN),
)
