"""What this service does before and after a change of the schedule, in words."""

from collections.abc import Callable, Mapping
from http import HTTPStatus

from domain.releases.changes import Change, Kind


def effect_of(change: Change) -> str:
    """Return what becomes of the calls that a change concerns."""
    if not change.hosted:
        return (
            "Not hosted here: the change is announced, and the checker finds affected requests, "
            "but no request to this service changes."
        )
    if change.is_strict:
        return _strict(change)
    return f"{_EFFECTS[change.kind](change)} With Platform-Release, a request can try both."


def _strict(change: Change) -> str:
    """Return the effect of a rule of security, a limit or an expiry."""
    if change.is_always_applied:
        return "Applies in every release, independently of RELEASE and Platform-Release."
    if change.status == HTTPStatus.TOO_MANY_REQUESTS:
        effect = f"Counted from {change.release} on; requests above the rate are answered 429."
    else:
        effect = f"Changes with {change.release}."
    return f"{effect} Only the running release counts, not Platform-Release."


def _gone(change: Change) -> str:
    before = "Answered 404" if change.status == HTTPStatus.GONE else "Works"
    return f"{before} before {change.release}; answered {change.status} from then on."


def _field(change: Change) -> str:
    former = "".join(
        f" Before, {name} sets {', '.join(names)}."
        for name, names in (change.renamed or {}).items()
    )
    refused = (
        f", and a request that sets it is answered {change.status}"
        if any(each.attributes for each in change.calls)
        else ""
    )
    return f"From {change.release} on, responses do not have the field{refused}.{former}"


def _applied(change: Change) -> str:
    return f"Applies from {change.release} on."


_EFFECTS: Mapping[Kind, Callable[[Change], str]] = {
    Kind.OPERATION_GONE: _gone,
    Kind.PARAMETER_REFUSED: _gone,
    Kind.FIELD_GONE: _field,
    Kind.DEFAULT_CHANGED: _applied,
    Kind.LIMIT_APPLIED: _applied,
}
