"""Functions that actions use to check and test contacts."""

from collections.abc import Sequence

from domain.paging.contacts.actions import ContactFunctions
from domain.paging.notifications.outbox import MESSAGE_OUTCOME_QUERY
from web.outgoing.apprise_processes import check_apprise_url
from web.services import get_services, get_settings


def build_contact_functions() -> ContactFunctions:
    """Return the functions that check a contact's URL and find the result of a test message."""

    def find_outcome(message_id: int) -> Sequence[str | None] | None:
        return get_services().connections.fetch_first_row(
            MESSAGE_OUTCOME_QUERY, {"message_id": message_id}
        )

    return ContactFunctions(
        read_url=lambda url: check_apprise_url(url, get_settings()), find_outcome=find_outcome
    )
