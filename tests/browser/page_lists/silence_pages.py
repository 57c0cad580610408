"""The pages of silences and maintenance windows of a project."""

from tests.support.accounts.api_caller import api_caller
from tests.support.accounts.people import Person
from tests.support.service.live import LiveGatebell


def silence_pages(gatebell: LiveGatebell, person: Person, path: str, comment: str) -> list[str]:
    """Return the pages, with a silence of the first alert, one that has ended, and a window."""
    call = api_caller(gatebell, person, f"/projects/{path}")
    body = {"matchers": 'severity="critical"', "duration": "2h", "comment": comment}
    active = call.done("POST", "/silences", json=body, status=201)["id"]
    ended = call.done("POST", "/silences", json=body, status=201)["id"]
    call.done("DELETE", f"/silences/{ended}", status=204)
    window = {
        "name": comment[:255],
        "starts_at": "2030-01-01T02:00",
        "time_zone": "Europe/Berlin",
        "duration": "2h",
        "rule": "FREQ=WEEKLY;BYDAY=SU",
        "environments": ["production", "staging/*"],
    }
    planned = call.done("POST", "/maintenance_windows", json=window, status=201)["id"]
    at, windows = f"/{path}/-/silences", f"/{path}/-/maintenance_windows"
    return [
        *(at, f"{at}?state=expired", f"{at}?state=pending", f"{at}/{active}", f"{at}/{ended}"),
        *(f"{at}/new", f"{at}/new?alert=1", f"{at}/flapping"),
        *(windows, f"{windows}/new", f"{windows}/{planned}/edit"),
    ]
