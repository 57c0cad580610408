"""What this service does before and after a change of the schedule, in words."""

from collections.abc import Callable, Mapping
from http import HTTPStatus

from domain.releases.changes import Change, Kind


def effect_of(change: Change) -> str:
    """Return what becomes of the calls that a change concerns."""
    if not change.hosted:
        return (
            "Not hosted here: the change is announced, and the checker finds what it concerns, but "
            "no request of this service changes."
        )
    if change.is_strict:
        return _strict(change)
    return f"{_EFFECTS[change.kind](change)} Platform-Release tries both sides."


def _strict(change: Change) -> str:
    """Return the effect of a rule of security, a limit or an expiry."""
    if change.is_always_applied:
        return "Applied in every release, whatever RELEASE and Platform-Release say."
    if change.status == HTTPStatus.TOO_MANY_REQUESTS:
        effect = f"Counted from {change.release} on, and refused with 429 above the rate."
    else:
        effect = f"Changes with {change.release}."
    return f"{effect} The running release decides, whatever Platform-Release says."


def _gone(change: Change) -> str:
    before = "Answered with 404" if change.status == HTTPStatus.GONE else "Served"
    return f"{before} before, and from {change.release} on refused with {change.status}."


def _field(change: Change) -> str:
    former = "".join(
        f" Before, a value of {name} counts for {', '.join(names)}."
        for name, names in (change.renamed or {}).items()
    )
    refused = (
        f", and a request that sets it is refused with {change.status}"
        if any(each.attributes for each in change.calls)
        else ""
    )
    return f"From {change.release} on responses lack the field{refused}.{former}"


def _applied(change: Change) -> str:
    return f"Applied from {change.release} on."


_EFFECTS: Mapping[Kind, Callable[[Change], str]] = {
    Kind.OPERATION_GONE: _gone,
    Kind.PARAMETER_REFUSED: _gone,
    Kind.FIELD_GONE: _field,
    Kind.DEFAULT_CHANGED: _applied,
    Kind.LIMIT_APPLIED: _applied,
}
