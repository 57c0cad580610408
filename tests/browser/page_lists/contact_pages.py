"""The pages of contacts and channels, and of a link in a message."""

from domain.notifications.acknowledging import AcknowledgementLink, seal_link
from tests.support.accounts.api_caller import api_caller
from tests.support.accounts.people import Person, now, settings_of
from tests.support.service.live import LiveGatebell


def contact_pages(gatebell: LiveGatebell, person: Person, path: str) -> list[str]:
    """Return the pages, with a contact that waits for its code, and a channel."""
    email = {"type": "email", "address": "a.very.long.name.of.somebody@pager.example.org"}
    api_caller(gatebell, person, "/user/contacts").done("POST", status=201, json=email)
    at = f"/projects/{path.replace('/', '%2F')}/notification_channels"
    api_caller(gatebell, person, at).done("POST", status=201, json={**email, "label": "Team"})
    link = AcknowledgementLink(user_id=1, first_batch_id=1, last_batch_id=1)
    sealed = seal_link(link, [settings_of(gatebell).secret_key], now=now())
    return [
        "/-/user_settings/contacts",
        f"/{path}/-/settings/channels",
        f"/-/acknowledge/{sealed}",
    ]
