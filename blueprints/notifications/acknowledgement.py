"""/-/acknowledge/…: the link in a message that acknowledges alerts without signing in.

Programs that look at messages follow links, so only the form's POST changes something. The page
reads and writes no cookie: whoever has the link is the person that the message was sent to.
"""

import re
from datetime import timedelta

from flask import Blueprint, render_template, request
from flask.typing import ResponseReturnValue

from domain.errors import InvalidError
from domain.escalations.handling import snooze_by_link
from domain.notifications.acknowledging import (
    AcknowledgementLink,
    Chosen,
    acknowledge,
    alerts_of_link,
    open_link,
)
from web.access.marks import open_to_anyone
from web.extensions import db
from web.http.endpoints import ErrorFormat, MachineBlueprint
from web.http.work import work
from web.sealing.sealer import NOT_KEPT
from web.services import now, services

acknowledgement: Blueprint = MachineBlueprint(
    "acknowledgement", __name__, url_prefix="/-/acknowledge", errors=ErrorFormat.PAGE
)
_ID = re.compile("[0-9]{1,19}")
_SNOOZES = {"1h": timedelta(hours=1), "4h": timedelta(hours=4)}


@acknowledgement.get("/<sealed>")
@open_to_anyone
def show(sealed: str) -> ResponseReturnValue:
    """Show the alerts of a message, and ask."""
    return _page(_opened(sealed)), 200, NOT_KEPT


@acknowledgement.post("/<sealed>")
@open_to_anyone
def confirm(sealed: str) -> ResponseReturnValue:
    """Acknowledge or snooze the selected alerts of a message that still wait for somebody."""
    link, length = _opened(sealed), request.form.get("snooze", "")
    try:
        if length in _SNOOZES:
            done = snooze_by_link(work(), link, _chosen(), _SNOOZES[length])
        else:
            done = acknowledge(work(), link, _chosen())
    except InvalidError as error:
        return _page(link, problem=str(error)), 422, NOT_KEPT
    return _page(link, done=done, snoozed_for=length), 200, NOT_KEPT


def _page(
    link: AcknowledgementLink, *, done: int = 0, snoozed_for: str = "", problem: str = ""
) -> str:
    return render_template(
        "notifications/acknowledge.html",
        found=alerts_of_link(link, session=db.session(), now=now()),
        done=done,
        snoozed_for=snoozed_for if snoozed_for in _SNOOZES else "",
        problem=problem,
    )


def _chosen() -> Chosen:
    return Chosen(alerts=_ids("alert"), others_of=_ids("others_of"), named=_ids("named"))


def _ids(name: str) -> frozenset[int]:
    """Return the ids of a field; what is none counts as nothing, and leads to nothing."""
    values = request.form.getlist(name)
    return frozenset(int(each) for each in values if _ID.fullmatch(each))


def _opened(sealed: str) -> AcknowledgementLink:
    settings = services().live_settings.environment
    keys = (settings.secret_key, *settings.secret_key_fallbacks)
    return open_link(sealed, keys, now=now())
