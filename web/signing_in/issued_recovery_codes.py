"""New recovery codes, stored in the session for the page that shows them once."""

from domain.accounts.factors.recovery_codes import renew_codes
from domain.audit.events import Event, EventKind
from web.access.marks import get_current_user
from web.extensions import db
from web.http.audit_events import record_event
from web.sealing.session_secrets import keep_secret, take_secret
from web.services import now, services

_SESSION_KEY = "recovery_codes"


def issue_recovery_codes() -> None:
    """Issue new codes for the signed-in user; the next page shows them."""
    codes = renew_codes(
        get_current_user().id, session=db.session(), keyring=services().keyring, now=now()
    )
    keep_secret(_SESSION_KEY, " ".join(codes))
    record_event(Event(kind=EventKind.RECOVERY_CODES_MADE, user_id=get_current_user().id))


def take_recovery_codes() -> list[str]:
    """Return the codes that were just issued, once."""
    return (take_secret(_SESSION_KEY) or "").split()
