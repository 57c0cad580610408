"""The pages of webhooks of a project."""

from tests.support.accounts.api_caller import api_caller
from tests.support.accounts.people import Person
from tests.support.service.live import LiveGatebell


def webhook_pages(gatebell: LiveGatebell, person: Person, path: str) -> list[str]:
    """Return the pages of webhooks, of which one has a delivery that failed."""
    call = api_caller(gatebell, person, f"/projects/{path.replace('/', '%2F')}/webhooks")
    given = {"url": "http://10.1.2.3/in?key=hidden", "events": "*", "labels": 'team="db"'}
    webhook = call.done("POST", status=201, json=given)["id"]
    delivery = call.done("POST", f"/{webhook}/test")["delivery_id"]
    at = f"/{path}/-/settings/webhooks"
    one = f"{at}/{webhook}"
    return [at, f"{at}/new", one, f"{one}/deliveries", f"{one}/deliveries/{delivery}"]
