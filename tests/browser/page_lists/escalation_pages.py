"""Addresses of pages of escalations, with a policy and a route of hostile names."""

from domain.access.roles import Role
from tests.browser.looks import NASTY
from tests.support.accounts.api_caller import api_caller
from tests.support.accounts.people import Person
from tests.support.accounts.team import give_role, person_for
from tests.support.service.live import LiveGatebell


def escalation_pages(service: LiveGatebell, person: Person, path: str) -> list[str]:
    """Create a policy and routes in a project, and return where they are shown."""
    call = api_caller(service, person, f"/projects/{path.replace('/', '%2F')}")
    other = person_for(service, Role.DEVELOPER)
    give_role(service, path, other, Role.DEVELOPER)
    steps = [f"0s user:{person.username}", f"5m user:{other.username}"]
    policy = {"name": NASTY[1:200], "steps": steps, "repeats": 2}
    made = call.done("POST", "/escalation_policies", status=201, json=policy)
    route = {
        "name": NASTY[1:200],
        "severities": ["critical", "high"],
        "environments": [NASTY[1:200]],
        "labels": 'team=~"db.*"',
        "escalation_policy_id": made["id"],
    }
    first = call.done("POST", "/alert_routes", status=201, json=route)
    call.done(
        "POST",
        "/alert_routes",
        status=201,
        json={"name": "Nobody", "severities": ["low"], "escalation_policy_id": None},
    )
    default = {"name": "Day", "steps": steps, "default": True}
    call.done("POST", "/escalation_policies", status=201, json=default)
    at = f"/{path}/-/on_call"
    return [
        *(f"{at}/policies", f"{at}/policies/new", f"{at}/policies/{made['id']}"),
        *(f"{at}/routes", f"{at}/routes/new", f"{at}/routes/{first['id']}"),
        *(f"{at}/routes/dry_run", f"{at}/routes/dry_run?days=30"),
    ]
