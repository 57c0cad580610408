"""Lists of scheduled changes, their states, and descriptions of their effects."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from itertools import groupby

from domain.core.labeled_enums import LabeledEnum
from domain.releases.changes import CallPattern, Change, Interface, ReleaseChangeKind
from domain.releases.schedule import SCHEDULE
from domain.releases.version import Release


class ReleaseChangeState(LabeledEnum):
    """The state of a change in the running release: in effect, announced, or not available."""

    IN_FORCE = "in_force", "In effect"
    ANNOUNCED = "announced", "Announced"
    #: Change to an interface that this service does not provide in any release.
    NOT_HOSTED = "not_hosted", "Announced, not available here"


@dataclass(frozen=True, kw_only=True)
class ChangeFilter:
    """The filters for a list of changes. None matches any value."""

    release: Release | None = None
    interface: Interface | None = None
    state: ReleaseChangeState | None = None


def get_change_state(change: Change, *, running: Release) -> ReleaseChangeState:
    """Return the state of a change in the running release."""
    if not change.hosted:
        return ReleaseChangeState.NOT_HOSTED
    is_in_force = change.is_always_applied or change.applies_in(running)
    return ReleaseChangeState.IN_FORCE if is_in_force else ReleaseChangeState.ANNOUNCED


def list_changes(change_filter: ChangeFilter, *, running: Release) -> Sequence[Change]:
    """Return the matching changes in the order of the schedule."""
    return [
        each
        for each in SCHEDULE
        if change_filter.release in {None, each.effective_release}
        and change_filter.interface in {None, each.interface}
        and change_filter.state in {None, get_change_state(each, running=running)}
    ]


def list_scheduled_releases() -> Sequence[Release]:
    """Return the releases that contain changes, in ascending order."""
    return sorted({each.effective_release for each in SCHEDULE})


def group_by_release(changes: Sequence[Change]) -> Sequence[tuple[Release, Sequence[Change]]]:
    """Return changes grouped by release, in the order of the schedule."""
    groups = groupby(changes, key=lambda each: each.effective_release)
    return [(release, list(members)) for release, members in groups]


def describe_effect(change: Change) -> str:
    """Return a description of a change's effect on calls."""
    if not change.hosted:
        return (
            "Not available here: this service does not provide the interface, but the release "
            "checker finds affected requests."
        )
    if change.is_strict:
        return _describe_strict_change(change)
    return f"{_EFFECT_DESCRIPTIONS[change.kind](change)} Use Platform-Release to try both versions."


def _describe_strict_change(change: Change) -> str:
    """Return a description of the effect of a security rule, a limit or an expiry."""
    if change.is_always_applied:
        return "Applies in every release, regardless of RELEASE and Platform-Release."
    if change.status == HTTPStatus.TOO_MANY_REQUESTS:
        effect = f"From {change.release} on, requests above the limit return 429."
    else:
        effect = f"Applies from {change.release} on."
    return f"{effect} The running release determines the behavior, not Platform-Release."


def _describe_removed_operation(change: Change) -> str:
    before = "Returns 404" if change.status == HTTPStatus.GONE else "Works"
    return f"{before} before {change.release}, and returns {change.status} from then on."


def _describe_removed_field(change: Change) -> str:
    former = "".join(
        f" In earlier releases, {name} sets {', '.join(names)}."
        for name, names in (change.renamed or {}).items()
    )
    refused = (
        f", and requests that set it return {change.status}"
        if any(each.attributes for each in change.call_patterns)
        else ""
    )
    return f"From {change.release} on, responses do not contain the field{refused}.{former}"


def _describe_effective_release(change: Change) -> str:
    return f"Applies from release {change.release} on."


_EFFECT_DESCRIPTIONS: Mapping[ReleaseChangeKind, Callable[[Change], str]] = {
    ReleaseChangeKind.OPERATION_GONE: _describe_removed_operation,
    ReleaseChangeKind.PARAMETER_REFUSED: _describe_removed_operation,
    ReleaseChangeKind.FIELD_GONE: _describe_removed_field,
    ReleaseChangeKind.DEFAULT_CHANGED: _describe_effective_release,
    ReleaseChangeKind.LIMIT_APPLIED: _describe_effective_release,
}


#: Values that meet the conditions in the schedule, by parameter. Other parameters accept any value.
_EXAMPLE_VALUES: Mapping[str, str] = {
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
_READ_METHODS = frozenset({"GET", "HEAD"})
#: Number of the last minor release before a major release.
_LAST_MINOR_RELEASE = 11


@dataclass(frozen=True, kw_only=True)
class ExampleRequest:
    """An example request. Variables in its path have the form `:name`."""

    method: str
    path: str
    #: Parameters in the query of a GET request, or in the body of other requests.
    parameters: tuple[tuple[str, str], ...]
    #: Latest release with the previous behavior.
    former_release: Release

    @property
    def has_body(self) -> bool:
        """True if the parameters are sent in the body."""
        return bool(self.parameters) and self.method not in _READ_METHODS


def build_example_request(change: Change) -> ExampleRequest | None:
    """Return a request that demonstrates a change.

    Return None if the `Platform-Release` header does not affect the change.
    """
    if change.is_strict or not change.hosted or not change.call_patterns:
        return None
    call = change.call_patterns[0]
    return ExampleRequest(
        method=call.methods[0] if call.methods else "GET",
        path=call.path.replace("*", "alerts"),
        parameters=_build_parameters(call),
        former_release=_find_previous_release(change.effective_release),
    )


def _build_parameters(call: CallPattern) -> tuple[tuple[str, str], ...]:
    if call.when is None:
        return ()
    name = call.when.parameter_names[0]
    return ((name, _EXAMPLE_VALUES.get(name, "…")),)


def _find_previous_release(release: Release) -> Release:
    earlier = [each for each in list_scheduled_releases() if each < release]
    return max(earlier, default=Release(release.major - 1, _LAST_MINOR_RELEASE))
