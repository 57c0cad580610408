"""Counts API calls by consumer, in memory (see `domain/releases/usage/call_counts.py`).

Before the view runs, the gate (`web/releases/gate.py`) records the changes that affect a call. API
operations count their own calls. All other affected requests, and requests that fail before their
operation, are counted after the response is created.
"""

import logging
import re
from collections.abc import Iterable
from functools import cache, lru_cache
from http import HTTPStatus
from threading import Event, Lock, Thread
from typing import Any

from flask import Response, after_this_request, g, request
from flask.globals import app_ctx, request_ctx
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from domain.oauth.token_authentication.bearer import Bearer
from domain.releases.call_matches import find_call_matches
from domain.releases.usage.call_counts import (
    ANONYMOUS_CONSUMER,
    UNKNOWN_NAME,
    CallCounter,
    CallTotals,
    Consumer,
    CountedCalls,
    UsageSignature,
    store_call_counts,
)
from domain.releases.usage.scheduled_parameters import SCHEDULE_NAMES
from domain.releases.usage.usage_reports import find_affecting_changes
from domain.releases.version import parse_release
from web.database.engine import open_engine
from web.metrics import count_deprecated_calls, count_dropped_calls
from web.releases.requested_release import (
    InvalidReleaseError,
    UnknownReleaseError,
    get_requested_release,
)
from web.services import get_services, get_settings
from web.settings.environment import Settings

_log = logging.getLogger("gatebell.calls")
#: Maximum number of counts that are stored in one transaction, so that locks are held briefly.
_COUNTS_PER_TRANSACTION = 200
_RULE_VARIABLE = re.compile(r"<(?:[^<>]*:)?([^<>:]+)>")
_RELEASE_HEADER_KEY = "HTTP_PLATFORM_RELEASE"


def record_operation(
    bearer: Bearer | None,
    given_names: Iterable[str],
    known_names: frozenset[str],
    kind: str = "",
    *,
    signed_in_user_id: int | None = None,
) -> None:
    """Count a call to an operation, with the names of the given parameters.

    `signed_in_user_id` is the ID of the signed-in user, if the request has no token. A request that
    previews a later release is not counted.
    """
    asked, own = request_ctx.request, app_ctx.g
    own.counted_call = None
    if _RELEASE_HEADER_KEY in asked.environ and _is_preview():
        return
    changes = own.get("noted_changes", ())
    rule = asked.url_rule
    shape = _build_usage_signature(
        asked.method,
        format_route(rule.rule, kind) if rule else _find_scheduled_path(changes),
        replace_unknown_names(given_names, known_names) if given_names else (),
        changes,
    )
    _count_call(bearer, shape, asked, signed_in_user_id)


def record_fast_operation(bearer: Bearer) -> None:
    """Count a call to an operation that has no parameters and is not affected by any change."""
    asked = request_ctx.request
    if _RELEASE_HEADER_KEY not in asked.environ or not _is_preview():
        _count_call(
            bearer, _build_usage_signature(asked.method, str(asked.url_rule), (), ()), asked
        )


def _count_call(
    bearer: Bearer | None, shape: UsageSignature, asked: Any, signed_in_user_id: int | None = None
) -> None:
    own = get_services()
    consumer = (
        Consumer(signed_in_user_id, None, None) if signed_in_user_id else _build_consumer(bearer)
    )
    own.calls.count_call(consumer, shape, address=asked.remote_addr, now=own.clock())
    app_ctx.g.counted_call = (consumer, shape)


@lru_cache(maxsize=1_000)
def _build_usage_signature(
    method: str, route: str, parameters: tuple[str, ...], changes: tuple[str, ...]
) -> UsageSignature:
    return UsageSignature("GET" if method == "HEAD" else method, route, parameters, changes)


def _build_consumer(bearer: Bearer | None) -> Consumer:
    if bearer is None:
        return ANONYMOUS_CONSUMER
    return Consumer(
        (bearer.sudo_by or bearer.profile).id, bearer.application_uid, bearer.personal_token_id
    )


def record_affecting_changes(change_ids: Iterable[str]) -> None:
    """Record the scheduled changes that affect this request, which is counted afterwards.

    If an API operation handles the request, the operation counts the request itself.
    """
    new, known = tuple(change_ids), g.get("noted_changes", ())
    if not new:
        return
    g.noted_changes = tuple(sorted({*known, *new}))
    if not known:
        after_this_request(_record_affected_request)


def _record_affected_request(response: Response) -> Response:
    """Count an affected request, unless its operation has already counted the request."""
    if "counted_call" not in g:
        names = SCHEDULE_NAMES.intersection(request.args)
        record_operation(
            g.get("bearer"),
            names,
            SCHEDULE_NAMES,
            _get_kind_variable(),
            signed_in_user_id=_find_signed_in_user_id(),
        )
    return response


def record_failed_call(response: Response) -> Response:
    """Count an API request with a valid token as failed if its status is 400 or above."""
    if response.status_code >= HTTPStatus.BAD_REQUEST:
        bearer = g.get("bearer") or g.get("api_caller")
        if "counted_call" not in g and isinstance(bearer, Bearer):
            record_operation(bearer, (), frozenset(), _get_kind_variable())
        if found := g.get("counted_call"):
            own, now = get_services(), get_services().clock()
            failed = CallTotals(0, now, now, request.remote_addr, errors=1)
            own.calls.add_counts([CountedCalls(found[0], found[1], failed)])
    return response


def _find_signed_in_user_id() -> int | None:
    """Return the ID of the user who is signed in to a page, or None for other requests.

    Only pages read the session.
    """
    user = g.get("_login_user")
    return user.id if user is not None and user.is_authenticated else None


def _get_kind_variable() -> str:
    return str((request.view_args or {}).get("kind", ""))


def _is_preview() -> bool:
    try:
        return get_requested_release() > parse_release(get_settings().release)
    except (InvalidReleaseError, UnknownReleaseError):
        return True


def _find_scheduled_path(changes: Iterable[str]) -> str:
    """Return the schedule's path for a request that no view handles, or an empty string."""
    found = find_call_matches(request.method, request.path)
    return next((each.call.path for each in found if each.change.id in changes), "")


def replace_unknown_names(
    given_names: Iterable[str], known_names: frozenset[str]
) -> tuple[str, ...]:
    """Return the sorted names of parameters, with one name for all unknown names."""
    names = {each.removesuffix("[]") for each in given_names}
    found = sorted(names & known_names)
    return tuple(found) if len(found) == len(names) else (*found, UNKNOWN_NAME)


@cache
def format_route(rule: str, kind: str) -> str:
    """Return a URL rule in the format of the schedule, such as `/api/v4/projects/:id/environments`.

    `kind` is the value of the variable with this name, `projects` or `groups`.
    """

    def format_variable(variable: re.Match[str]) -> str:
        name = variable[1]
        if name == "kind" and kind:
            return kind
        return ":id" if name == "reference" else f":{name}"

    return _RULE_VARIABLE.sub(format_variable, rule)


class CallFlusher:
    """Background task that stores the calls of one counter."""

    def __init__(self, counter: CallCounter, settings: Settings) -> None:
        """Store the counter and the settings of the database."""
        self._counter = counter
        self._settings = settings
        self._is_stopped = Event()
        self._flushing = Lock()

    def start_flushing(self) -> None:
        """Start storing the counts in the background."""
        Thread(target=self._flush_repeatedly, name="call counts", daemon=True).start()

    def flush_and_stop(self) -> None:
        """Store the remaining counts and stop."""
        self._is_stopped.set()
        self.flush_counts()

    def flush_counts(self) -> bool:
        """Store the counts and return True, or False if storing them must be retried later."""
        with self._flushing:
            calls, dropped = self._counter.take_counts()
            count_dropped_calls(dropped)
            return self._store_calls(calls) if calls else True

    def _flush_repeatedly(self) -> None:
        while not self._is_stopped.wait(self._settings.call_flush_seconds):
            self.flush_counts()

    def _store_calls(self, calls: list[CountedCalls]) -> bool:
        stored = 0
        engine = open_engine(self._settings)
        try:
            for begin in range(0, len(calls), _COUNTS_PER_TRANSACTION):
                part = calls[begin : begin + _COUNTS_PER_TRANSACTION]
                with Session(engine) as session, session.begin():
                    store_call_counts(part, session=session)
                stored += len(part)
        except SQLAlchemyError as error:  # the database is locked, full or unavailable
            _log.warning(
                "API usage could not be stored; it will be included in the next attempt.",
                extra={"event": "api_usage.not_stored", "reason": type(error).__name__},
            )
        finally:
            engine.dispose()
        self._counter.add_counts(calls[stored:])
        _count_deprecated_calls(calls[:stored])
        return stored == len(calls)


def _count_deprecated_calls(counted_callses: list[CountedCalls]) -> None:
    for each in counted_callses:
        for change_id, certainty in find_affecting_changes(each.shape).items():
            count_deprecated_calls(change_id, certainty, each.count.calls)
