"""Dependencies of actions that pass bodies to the receivers of alerts."""

from datetime import timedelta
from functools import partial

from domain.alerts.storing.inbound_delivery import Receiving
from web.http.errors import status_of
from web.services import services, settings
from web.settings.policies.alerts import body_limit


def receiving() -> Receiving:
    """Return the dependencies for receiving an alert that an action sends."""
    current = settings()
    return Receiving(
        connection=services().connections,
        body_limit=partial(body_limit, current),
        late_copies=timedelta(seconds=current.late_copy_seconds),
        status_of=status_of,
    )
