"""The page /-/acknowledge/…: the link in a message that acknowledges without signing in.

Mail scanners follow links, so only the form's POST changes anything. The page reads and writes no
cookie: anyone with the link counts as the recipient of the message.
"""

import re
from datetime import timedelta

from flask import Blueprint, render_template, request
from flask.typing import ResponseReturnValue

from domain.core.errors import InvalidError
from domain.incidents.link_actions import acknowledge_by_link
from domain.paging.escalations.manual_actions import snooze_by_link
from domain.paging.notifications.acknowledging import (
    AcknowledgementLink,
    Chosen,
    open_link,
    things_of_link,
)
from domain.paging.notifications.page_targets import About, Subject
from web.access.decorators import open_to_anyone
from web.extensions import db
from web.http.endpoints import ErrorFormat, MachineBlueprint
from web.http.work import work
from web.sealing.sealer import NOT_KEPT
from web.services import now, services

acknowledgement: Blueprint = MachineBlueprint(
    "acknowledgement", __name__, url_prefix="/-/acknowledge", errors=ErrorFormat.PAGE
)
_THING = re.compile("(incident-)?([0-9]{1,19})")
_SNOOZES = {"1h": timedelta(hours=1), "4h": timedelta(hours=4)}


@acknowledgement.get("/<sealed>")
@open_to_anyone
def show(sealed: str) -> ResponseReturnValue:
    """Show the alerts and incidents of a message, with a button to acknowledge them."""
    return _page(_opened(sealed)), 200, NOT_KEPT


@acknowledgement.post("/<sealed>")
@open_to_anyone
def confirm(sealed: str) -> ResponseReturnValue:
    """Acknowledge or snooze the selected alerts and incidents of a message that are still open."""
    link, length = _opened(sealed), request.form.get("snooze", "")
    try:
        if length in _SNOOZES:
            done = snooze_by_link(work(), link, _chosen(), _SNOOZES[length])
        else:
            done = acknowledge_by_link(work(), link, _chosen())
    except InvalidError as error:
        return _page(link, problem=str(error)), 422, NOT_KEPT
    return _page(link, done=done, snoozed_for=length), 200, NOT_KEPT


def _page(
    link: AcknowledgementLink, *, done: int = 0, snoozed_for: str = "", problem: str = ""
) -> str:
    return render_template(
        "notifications/acknowledge.html",
        found=things_of_link(link, session=db.session(), now=now()),
        done=done,
        snoozed_for=snoozed_for if snoozed_for in _SNOOZES else "",
        problem=problem,
    )


def _chosen() -> Chosen:
    others_of = frozenset(each.id for each in _things("others_of"))
    return Chosen(things=_things("alert"), others_of=others_of, named=_things("named"))


def _things(name: str) -> frozenset[About]:
    """Return the alerts and incidents that a form field names; malformed values are ignored."""
    found = filter(None, map(_THING.fullmatch, request.form.getlist(name)))
    return frozenset(
        About(Subject.INCIDENT if each[1] else Subject.ALERT, int(each[2])) for each in found
    )


def _opened(sealed: str) -> AcknowledgementLink:
    settings = services().live_settings.environment
    keys = (settings.secret_key, *settings.secret_key_fallbacks)
    return open_link(sealed, keys, now=now())
