"""Gate that applies the release schedule to requests.

Until a change is released, affected calls work as before, and their responses have headers that
announce the change. Starting with the release, the gate applies the new behavior. Operations
without scheduled changes need only a single lookup.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import orjson
from flask import after_this_request, request

from domain.core.errors import DomainError, GoneError, NotFoundError, QueryError
from domain.releases.call_matches import CallMatch, find_call_matches, is_affected_by_parameters
from domain.releases.changes import Change
from domain.releases.conditions import Parameters, list_nested_names
from domain.releases.version import Release
from web.releases.requested_release import (
    RELEASE_HEADER,
    get_requested_release,
    get_running_release,
)
from web.releases.schedule_view import add_announcement_headers
from web.releases.usage_recording import record_affecting_changes

#: Pattern of a variable in a URL rule.
_RULE_VARIABLE = re.compile(r"<[^<>]+>")
_KIND_VARIABLE = re.compile(r"<any\([^()]*\):kind>")
_ERRORS_BY_STATUS: Mapping[int, type[DomainError]] = {
    400: QueryError,
    404: NotFoundError,
    410: GoneError,
}
#: Fields that pydantic excludes from a dump: names, and `__all__` for each item of a list.
ExcludedFields = dict[str, Any]


@cache
def list_schedule_entries(method: str, rule: str) -> tuple[CallMatch, ...]:
    """Return the request-dependent schedule entries for a method and a URL rule.

    Rules for security, limits and expiry are only included if they depend on parameters.
    """
    path = _RULE_VARIABLE.sub(":variable", rule)
    return tuple(
        concern
        for concern in find_call_matches(method, path)
        if concern.change.hosted and (concern.call.when or not concern.change.is_strict)
    )


@dataclass(frozen=True)
class ReleaseGate:
    """Schedule entries that apply to a request."""

    release: Release
    concerns: tuple[CallMatch, ...]
    #: Parameters as they were given.
    given: Mapping[str, Any]

    def rename_parameters(self) -> Mapping[str, Any]:
        """Return the parameters, and add the values of renamed parameters under the new names."""
        taken = dict(self.given)
        for change in _list_announced_changes(self.concerns, self.release):
            for former, names in (change.renamed or {}).items():
                if former in taken:
                    taken = dict.fromkeys(names, taken[former]) | taken
        return taken

    def list_removed_fields(self, *, is_list: bool) -> ExcludedFields | None:
        """Return the fields that a response no longer has, or None if it still has all fields.

        The fields have the format of pydantic's `exclude` option.
        """
        gone = [
            name
            for concern in self.concerns
            if concern.change.applies_in(self.release)
            for name in concern.call.fields
        ]
        if not gone:
            return None
        tree: ExcludedFields = {}
        for name in gone:
            _set_nested_field(tree, name.replace("[]", ".__all__").split("."))
        return {"__all__": tree} if is_list else tree


def open_release_gate(read_parameters: Callable[[], Mapping[str, Any]]) -> ReleaseGate | None:
    """Apply the release schedule to this request, and announce changes.

    Return None if the schedule has no entry for the request. `read_parameters` returns the
    parameters. Changes to rules for security, limits and expiry are only announced here. The code
    of each rule applies these changes according to the running release.

    Raise QueryError, NotFoundError or GoneError for calls that a release has removed.
    """
    concerns = list_schedule_entries(
        "GET" if request.method == "HEAD" else request.method, _get_url_rule()
    )
    if not concerns:
        return None
    release, parameters = get_requested_release(), read_parameters()
    texts = dict.fromkeys(list_nested_names(parameters), "")
    texts |= {name: _to_text(value) for name, value in parameters.items()}
    used = tuple(each for each in concerns if is_affected_by_parameters(each.call, texts))
    record_affecting_changes(each.change.id for each in used)
    after_this_request(_add_vary_header)
    for concern in used:
        if concern.rejects_call and concern.change.applies_in(release):
            raise _build_removal_error(concern, texts)
    # Fields of responses are announced whether or not a client reads them.
    announced = _list_announced_changes(
        [each for each in concerns if each in used or each.call.fields], release
    )
    if announced:
        after_this_request(partial(add_announcement_headers, changes=announced))
    return ReleaseGate(release=release, concerns=concerns, given=parameters)


def apply_change(change: Change) -> None:
    """Announce a change that affects this request, or raise its error once it takes effect."""
    record_affecting_changes([change.id])
    after_this_request(_add_vary_header)
    if change.applies_in(get_requested_release()):
        raise _build_change_error(change, "")
    after_this_request(partial(add_announcement_headers, changes=[change]))


def _get_url_rule() -> str:
    rule = request.url_rule.rule if request.url_rule else ""
    kind = (request.view_args or {}).get("kind")
    return _replace_kind_variable(rule, kind) if kind else rule


@cache
def _replace_kind_variable(rule: str, kind: str) -> str:
    """Return a URL rule for projects and groups as a rule for only projects or only groups."""
    return _KIND_VARIABLE.sub(kind, rule)


def _list_announced_changes(concerns: Sequence[CallMatch], release: Release) -> Sequence[Change]:
    changes = dict.fromkeys(each.change for each in concerns)
    return [each for each in changes if not each.applies_in(_get_deciding_release(each, release))]


def _get_deciding_release(change: Change, release: Release) -> Release:
    """Return the release that decides whether a change applies.

    For strict changes, clients cannot override the running release.
    """
    return get_running_release() if change.is_strict else release


def _build_removal_error(call_match: CallMatch, parameters: Parameters) -> DomainError:
    named = call_match.call.attributes or (
        call_match.call.when.parameter_names if call_match.call.when else ()
    )
    return _build_change_error(
        call_match.change, next((name for name in named if name in parameters), "")
    )


def _build_change_error(change: Change, name: str) -> DomainError:
    kind = _ERRORS_BY_STATUS[change.status]
    return (
        kind(change.message, field=name) if issubclass(kind, QueryError) else kind(change.message)
    )


def _to_text(value: Any) -> str:
    return value if isinstance(value, str) else orjson.dumps(value).decode()


def _add_vary_header(response: Any) -> Any:
    response.vary.add(RELEASE_HEADER)
    return response


def _set_nested_field(tree: ExcludedFields, parts: Sequence[str]) -> None:
    *outer, last = parts
    for part in outer:
        tree = tree.setdefault(part, {})
    tree[last] = True
