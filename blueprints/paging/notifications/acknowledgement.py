"""The /-/acknowledge/… page, where links in messages acknowledge alerts without a sign-in.

Mail scanners follow links, so alerts are acknowledged only when the form is submitted. The page
reads and writes no cookies. Anyone with the link is treated as the recipient of the message.
"""

import re
from datetime import timedelta

from flask import Blueprint, render_template, request
from flask.typing import ResponseReturnValue

from domain.core.errors import InvalidError
from domain.incidents.changes import acknowledge_incidents_by_link
from domain.paging.escalations.manual_actions import snooze_alerts_by_link
from domain.paging.notifications.acknowledgement_links import (
    AcknowledgementLink,
    LinkSelection,
    find_linked_subjects,
    parse_signed_link,
)
from domain.paging.notifications.page_subjects import PageSubject, SubjectKind
from web.access.decorators import open_to_anyone
from web.extensions import db
from web.http.endpoints import ApiClientBlueprint, ErrorFormat
from web.http.unit_of_work import get_unit_of_work
from web.sealing.sealed_values import SECRET_URL_HEADERS
from web.services import get_current_time, get_services

acknowledgement: Blueprint = ApiClientBlueprint(
    "acknowledgement", __name__, url_prefix="/-/acknowledge", errors=ErrorFormat.PAGE
)
_SUBJECT_PATTERN = re.compile("(incident-)?([0-9]{1,19})")
_SNOOZE_LENGTHS = {"1h": timedelta(hours=1), "4h": timedelta(hours=4)}


@acknowledgement.get("/<sealed>")
@open_to_anyone
def show(sealed: str) -> ResponseReturnValue:
    """Show the alerts and incidents in a message, with a button that acknowledges them."""
    return _render_page(_parse_link(sealed)), 200, SECRET_URL_HEADERS


@acknowledgement.post("/<sealed>")
@open_to_anyone
def confirm(sealed: str) -> ResponseReturnValue:
    """Acknowledge or snooze the selected alerts and incidents in a message if they are open."""
    link, length = _parse_link(sealed), request.form.get("snooze", "")
    try:
        if length in _SNOOZE_LENGTHS:
            done = snooze_alerts_by_link(
                get_unit_of_work(), link, _read_link_selection(), _SNOOZE_LENGTHS[length]
            )
        else:
            done = acknowledge_incidents_by_link(get_unit_of_work(), link, _read_link_selection())
        if request.accept_mimetypes.best == "application/json":  # The service worker requests JSON.
            return {"acknowledged": done}, 200, SECRET_URL_HEADERS
    except InvalidError as error:
        return _render_page(link, problem=str(error)), 422, SECRET_URL_HEADERS
    return _render_page(link, done=done, snoozed_for=length), 200, SECRET_URL_HEADERS


def _render_page(
    link: AcknowledgementLink, *, done: int = 0, snoozed_for: str = "", problem: str = ""
) -> str:
    return render_template(
        "notifications/acknowledge.html",
        found=find_linked_subjects(link, session=db.session(), now=get_current_time()),
        done=done,
        snoozed_for=snoozed_for if snoozed_for in _SNOOZE_LENGTHS else "",
        problem=problem,
    )


def _read_link_selection() -> LinkSelection:
    others_of = frozenset(each.id for each in _parse_subjects("others_of"))
    return LinkSelection(
        things=_parse_subjects("alert"), others_of=others_of, named=_parse_subjects("named")
    )


def _parse_subjects(name: str) -> frozenset[PageSubject]:
    """Return the alerts and incidents in a form field.

    Malformed values are ignored.
    """
    found = filter(None, map(_SUBJECT_PATTERN.fullmatch, request.form.getlist(name)))
    return frozenset(
        PageSubject(SubjectKind.INCIDENT if each[1] else SubjectKind.ALERT, int(each[2]))
        for each in found
    )


def _parse_link(sealed_text: str) -> AcknowledgementLink:
    settings = get_services().live_settings.environment_settings
    keys = (settings.secret_key, *settings.secret_key_fallbacks)
    return parse_signed_link(sealed_text, keys, now=get_current_time())
