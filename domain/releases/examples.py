"""A request that a change of the schedule concerns, to be tried in both releases."""

from collections.abc import Mapping
from dataclasses import dataclass

from domain.releases.changes import Call, Change
from domain.releases.listing import releases_on_schedule
from domain.releases.version import Release

#: Values that make a condition true, by parameter; others are any text.
_VALUES: Mapping[str, str] = {
    "page": "2",
    "search": "ab",
    "updated_after": "2026-01-01T00:00:00Z",
    "confidential": "true",
    "stage": "x" * 256,
    "external": "true",
    "operations_access_level": "private",
    "ci_job_token_scope_enabled": "true",
    "user_email_lookup_limit": "60",
}
_READING = frozenset({"GET", "HEAD"})
#: The last release before a major one.
_LAST_MINOR = 11


@dataclass(frozen=True, kw_only=True)
class Example:
    """A request; variables of its path are written as `:name`."""

    method: str
    path: str
    #: Of the query of a GET, or else of the body.
    parameters: tuple[tuple[str, str], ...]
    #: A release with the former behaviour.
    former_release: Release

    @property
    def has_body(self) -> bool:
        """Return whether the parameters are those of a body."""
        return bool(self.parameters) and self.method not in _READING


def example_of(change: Change) -> Example | None:
    """Return a request that shows a change, or None if Platform-Release shows nothing of it."""
    if change.is_strict or not change.hosted or not change.calls:
        return None
    call = change.calls[0]
    return Example(
        method=call.methods[0] if call.methods else "GET",
        path=call.path.replace("*", "alerts"),
        parameters=_parameters(call),
        former_release=_before(change.removal),
    )


def _parameters(call: Call) -> tuple[tuple[str, str], ...]:
    if call.when is None:
        return ()
    name = call.when.names[0]
    return ((name, _VALUES.get(name, "…")),)


def _before(release: Release) -> Release:
    earlier = [each for each in releases_on_schedule() if each < release]
    return max(earlier, default=Release(release.major - 1, _LAST_MINOR))
