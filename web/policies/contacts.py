"""Functions with which actions check and test contacts."""

from collections.abc import Sequence

from domain.paging.contacts.actions import ContactMeans
from domain.paging.notifications.outbox import OUTCOME_OF_MESSAGE
from web.outgoing.apprise_processes import check_apprise_url
from web.services import services, settings


def contact_means() -> ContactMeans:
    """Return the functions that check a contact's URL and find the result of a test message."""

    def find_outcome(message_id: int) -> Sequence[str | None] | None:
        return services().connections.first(OUTCOME_OF_MESSAGE, {"message_id": message_id})

    return ContactMeans(
        read_url=lambda url: check_apprise_url(url, settings()), find_outcome=find_outcome
    )
