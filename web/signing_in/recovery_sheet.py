"""New recovery codes, on their way to the one page that shows them."""

from domain.accounts.factors.recovery_codes import renew_codes
from domain.audit.events import Event, EventKind
from web.extensions import db
from web.http.access import visitor
from web.http.audit import note
from web.sealing.session_secrets import keep_secret, take_secret
from web.services import now, services

_PLACE = "recovery_codes"


def put_on_sheet() -> None:
    """Make new codes for the visitor; the next page shows them."""
    codes = renew_codes(visitor().id, session=db.session(), keyring=services().keyring, now=now())
    keep_secret(_PLACE, " ".join(codes))
    note(Event(kind=EventKind.RECOVERY_CODES_MADE, user_id=visitor().id))


def take_sheet() -> list[str]:
    """Return the codes that were just made; a second time there are none."""
    return (take_secret(_PLACE) or "").split()
