"""Gate that applies the release schedule to requests.

A call that a change affects works as before until the release of the change, with headers that
announce the change. From that release on, the schedule determines the response. Most operations
have no entry in the schedule, and for them the gate is a single lookup.
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

#: Pattern of a variable in a URL rule.
_CONVERTER = re.compile(r"<[^<>]+>")
_KIND = re.compile(r"<any\([^()]*\):kind>")
_ERRORS: Mapping[int, type[DomainError]] = {400: QueryError, 404: NotFoundError, 410: GoneError}
#: Fields that pydantic excludes from a dump: names, and `__all__` for each item of a list.
Excluded = dict[str, Any]


@cache
def concerns_of(method: str, rule: str) -> tuple[Concern, ...]:
    """Return the schedule entries for a method and a URL rule that depend on the request.

    Rules for security, limits and expiry are only included if they depend on parameters.
    """
    path = _CONVERTER.sub(":variable", rule)
    return tuple(
        concern
        for concern in calls_to(method, path)
        if concern.change.hosted and (concern.call.when or not concern.change.is_strict)
    )


@dataclass(frozen=True)
class Gate:
    """Schedule entries that apply to a request."""

    release: Release
    concerns: tuple[Concern, ...]
    #: Parameters as they were given.
    given: Mapping[str, Any]

    def parameters(self) -> Mapping[str, Any]:
        """Return the parameters, with values of former names also under their new names."""
        taken = dict(self.given)
        for change in _announced(self.concerns, self.release):
            for former, names in (change.renamed or {}).items():
                if former in taken:
                    taken = dict.fromkeys(names, taken[former]) | taken
        return taken

    def excluded(self, *, is_list: bool) -> Excluded | None:
        """Return the fields that a response no longer has, in the format of pydantic's dump."""
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
    """Apply the schedule to this request and announce its changes; return None without any.

    `read` returns the parameters. Changes to rules for security, limits and expiry are only
    announced here. Their own code applies them according to the running release.

    Raise QueryError, NotFoundError or GoneError for calls that a release has removed.
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
    # Fields of responses are announced whether or not a client reads them.
    announced = _announced([each for each in concerns if each in used or each.call.fields], release)
    if announced:
        after_this_request(partial(announce, changes=announced))
    return Gate(release=release, concerns=concerns, given=parameters)


def apply_change(change: Change) -> None:
    """Announce a change that this request uses, or raise its error once its release applies."""
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
    """Return a URL rule for projects and groups as a rule for one of them."""
    return _KIND.sub(kind, rule)


def _announced(concerns: Sequence[Concern], release: Release) -> Sequence[Change]:
    changes = dict.fromkeys(each.change for each in concerns)
    return [each for each in changes if not each.applies_in(_deciding(each, release))]


def _deciding(change: Change, release: Release) -> Release:
    """Return the release that decides whether a change applies.

    For strict changes, clients cannot override the running release.
    """
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
