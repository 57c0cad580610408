"""/-/acknowledge/…: the link in a message that acknowledges alerts without signing in.

Programs that look at messages follow links, so only the form's POST changes something. The page
reads and writes no cookie: whoever has the link is the person that the message was sent to.
"""

from flask import Blueprint, render_template
from flask.typing import ResponseReturnValue

from domain.audit.events import Event, EventKind
from domain.notifications.acknowledging import acknowledge, alerts_of_link
from domain.notifications.links import AcknowledgementLink, open_link
from web.access.marks import open_to_anyone
from web.extensions import db
from web.http.audit_events import record_event
from web.http.endpoints import ErrorFormat, MachineBlueprint
from web.services import now, services

acknowledgement: Blueprint = MachineBlueprint(
    "acknowledgement", __name__, url_prefix="/-/acknowledge", errors=ErrorFormat.PAGE
)
#: Neither the browser nor anything in between keeps the page.
_NOT_KEPT = {"Cache-Control": "no-store", "X-Robots-Tag": "noindex"}


@acknowledgement.get("/<sealed>")
@open_to_anyone
def show(sealed: str) -> ResponseReturnValue:
    """Show the alerts of a message, and ask."""
    found = alerts_of_link(_opened(sealed), session=db.session(), now=now())
    page = render_template("notifications/acknowledge.html", found=found, done=None)
    return page, 200, _NOT_KEPT


@acknowledgement.post("/<sealed>")
@open_to_anyone
def confirm(sealed: str) -> ResponseReturnValue:
    """Acknowledge the alerts of a message that still wait for somebody."""
    link = _opened(sealed)
    done = acknowledge(link, session=db.session(), now=now())
    db.session.flush()  # Before the alerts are read again.
    found = alerts_of_link(link, session=db.session(), now=now())
    if done:
        record_event(
            Event(
                kind=EventKind.ALERTS_ACKNOWLEDGED_BY_LINK,
                actor=found.user,
                user_id=found.user.id,
                details={"alerts": done},
            )
        )
    page = render_template("notifications/acknowledge.html", found=found, done=done)
    return page, 200, _NOT_KEPT


def _opened(sealed: str) -> AcknowledgementLink:
    settings = services().live_settings.environment
    keys = (settings.secret_key, *settings.secret_key_fallbacks)
    return open_link(sealed, keys, now=now())
