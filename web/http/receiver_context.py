"""Dependencies of actions that pass request bodies to alert receivers."""

from datetime import timedelta
from functools import partial

from domain.alerts.storing.inbound_delivery import ReceiverContext
from web.http.errors import get_error_status
from web.services import get_services, get_settings
from web.settings.policies.alerts import get_body_limit


def build_receiver_context() -> ReceiverContext:
    """Return the dependencies that an action needs to pass an alert to its receiver."""
    current = get_settings()
    return ReceiverContext(
        connection=get_services().connections,
        body_limit=partial(get_body_limit, current),
        late_copies=timedelta(seconds=current.late_copy_seconds),
        status_of=get_error_status,
    )
