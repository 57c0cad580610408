"""Somebody with incidents in every state, and where they are shown."""

from tests.support.accounts.api_caller import api_caller
from tests.support.accounts.people import Person
from tests.support.service.live import LiveGatebell


def incident_pages(gatebell: LiveGatebell, person: Person, project: str, nasty: str) -> list[str]:
    """Return the pages of a project's incidents, the first of which has alerts 1 and 2."""
    call = api_caller(gatebell, person, f"/projects/{project.replace('/', '%2F')}")
    conditions = {"severities": ["low"], "labels": {"team": nasty}}
    rule = call.done(
        "POST", "/incident_rules", status=201, json={"name": nasty[:200], **conditions}
    )
    markdown = f"# {nasty}\n\n| a | b |\n|---|---|\n| {nasty} | 1 |\n\n- `x`\n\n> quote\n\n{nasty}"
    linked = {"alerts": [1, 2], "description": markdown, "assignees": [person.username]}
    call.done("POST", "/incidents", status=201, json=linked)
    call.done("POST", "/incidents", status=201, json={"title": nasty[:200], "severity": "low"})
    comment = {"body": markdown, "internal": True}
    call.done("POST", "/incidents/1/notes", status=201, json=comment)
    call.done("PUT", "/incidents/2", json={"status": "resolved"})
    at = f"/{project}/-/incidents"
    return [
        *(at, f"{at}?status=all&severity=low&sort=severity", f"{at}?search=very"),
        *(f"{at}/1", f"{at}/2", f"{at}/new", f"{at}/rules", f"{at}/rules/{rule['id']}"),
    ]
