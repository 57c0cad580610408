"""The gate: applies the release schedule to a request.

A call that a change concerns is served as before until the release of the change, with headers
that announce it, and then as the schedule says. Most operations have no entry in the schedule: for
them the gate is one look-up.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import orjson
from flask import after_this_request, request

from domain.core.errors import DomainError, GoneError, NotFoundError, QueryError
from domain.releases.changes import Change
from domain.releases.conditions import Parameters, nested_names
from domain.releases.matching import Concern, calls_to, is_used
from domain.releases.version import Release
from web.releases.requested_release import HEADER, requested_release, running_release
from web.releases.schedule_view import announce
from web.releases.usage_recording import note_changes

#: A variable of a URL rule.
_CONVERTER = re.compile(r"<[^<>]+>")
_KIND = re.compile(r"<any\([^()]*\):kind>")
_ERRORS: Mapping[int, type[DomainError]] = {400: QueryError, 404: NotFoundError, 410: GoneError}
#: What pydantic leaves out of a dump: names, and `__all__` for each item of a list.
Excluded = dict[str, Any]


@cache
def concerns_of(method: str, rule: str) -> tuple[Concern, ...]:
    """Return the entries of the schedule for a method and a URL rule that a request can decide.

    Of rules of security, limits and expiries these are the entries that look at its parameters.
    """
    path = _CONVERTER.sub(":variable", rule)
    return tuple(
        concern
        for concern in calls_to(method, path)
        if concern.change.hosted and (concern.call.when or not concern.change.is_strict)
    )


@dataclass(frozen=True)
class Gate:
    """What the schedule says of a request."""

    release: Release
    concerns: tuple[Concern, ...]
    #: Parameters as they were given.
    given: Mapping[str, Any]

    def parameters(self) -> Mapping[str, Any]:
        """Return the parameters, with the values of former names under their new ones as well."""
        taken = dict(self.given)
        for change in _announced(self.concerns, self.release):
            for former, names in (change.renamed or {}).items():
                if former in taken:
                    taken = dict.fromkeys(names, taken[former]) | taken
        return taken

    def excluded(self, *, is_list: bool) -> Excluded | None:
        """Return the fields that a response has no more, as pydantic's dump takes them."""
        gone = [
            name
            for concern in self.concerns
            if concern.change.applies_in(self.release)
            for name in concern.call.fields
        ]
        if not gone:
            return None
        tree: Excluded = {}
        for name in gone:
            _put(tree, name.replace("[]", ".__all__").split("."))
        return {"__all__": tree} if is_list else tree


def open_gate(read: Callable[[], Mapping[str, Any]]) -> Gate | None:
    """Apply the schedule to this request, and announce its changes; None where it has none.

    `read` returns its parameters. Rules of security, limits and expiries are only announced: their
    own code applies them, by the running release.

    Raises QueryError, NotFoundError or GoneError for what a release has removed.
    """
    concerns = concerns_of("GET" if request.method == "HEAD" else request.method, _rule())
    if not concerns:
        return None
    release, parameters = requested_release(), read()
    texts = dict.fromkeys(nested_names(parameters), "")
    texts |= {name: _text(value) for name, value in parameters.items()}
    used = tuple(each for each in concerns if is_used(each.call, texts))
    note_changes(each.change.id for each in used)
    after_this_request(_vary)
    for concern in used:
        if concern.refuses and concern.change.applies_in(release):
            raise _removed(concern, texts)
    # Fields of responses are announced whether a client reads them or not.
    announced = _announced([each for each in concerns if each in used or each.call.fields], release)
    if announced:
        after_this_request(partial(announce, changes=announced))
    return Gate(release=release, concerns=concerns, given=parameters)


def apply_change(change: Change) -> None:
    """Announce a change that this request uses, or raise its error from its release on."""
    note_changes([change.id])
    after_this_request(_vary)
    if change.applies_in(requested_release()):
        raise _error(change, "")
    after_this_request(partial(announce, changes=[change]))


def _rule() -> str:
    rule = request.url_rule.rule if request.url_rule else ""
    kind = (request.view_args or {}).get("kind")
    return _of_kind(rule, kind) if kind else rule


@cache
def _of_kind(rule: str, kind: str) -> str:
    """Return a URL rule of projects and groups as that of one kind."""
    return _KIND.sub(kind, rule)


def _announced(concerns: Sequence[Concern], release: Release) -> Sequence[Change]:
    changes = dict.fromkeys(each.change for each in concerns)
    return [each for each in changes if not each.applies_in(_deciding(each, release))]


def _deciding(change: Change, release: Release) -> Release:
    """Return the release that decides on a change where another one was requested."""
    return running_release() if change.is_strict else release


def _removed(concern: Concern, parameters: Parameters) -> DomainError:
    named = concern.call.attributes or (concern.call.when.names if concern.call.when else ())
    return _error(concern.change, next((name for name in named if name in parameters), ""))


def _error(change: Change, name: str) -> DomainError:
    kind = _ERRORS[change.status]
    return (
        kind(change.message, field=name) if issubclass(kind, QueryError) else kind(change.message)
    )


def _text(value: Any) -> str:
    return value if isinstance(value, str) else orjson.dumps(value).decode()


def _vary(response: Any) -> Any:
    response.vary.add(HEADER)
    return response


def _put(tree: Excluded, parts: Sequence[str]) -> None:
    *outer, last = parts
    for part in outer:
        tree = tree.setdefault(part, {})
    tree[last] = True
