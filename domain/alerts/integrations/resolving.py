"""Says whether what a mapping reads can ever resolve an alert."""

from collections.abc import Mapping

from domain.alerts.reading.mapping import AlertField, FieldMapping
from domain.alerts.reading.paths import shown

_NOTHING = (
    "Nothing resolves these alerts: the sample has no end time, and no rule says which value means "
    "that an alert is over. They stay open until somebody resolves them."
)
_UNGROUPED = (
    "A recovery finds no alert to resolve: no fingerprint is mapped, and grouping by the rest of "
    "the payload is off. Choose a source field for the fingerprint."
)


def never_resolves(
    mapping: FieldMapping, sample: Mapping[str, object], *, automatic_fingerprint: bool
) -> str | None:
    """Return why alerts read with a mapping never resolve, in a sentence; None if they can."""
    has_end = AlertField.END_TIME in mapping.paths or AlertField.END_TIME in sample
    if not has_end and not mapping.rules.resolved_when:
        return _NOTHING
    has_identity = (
        AlertField.FINGERPRINT in mapping.paths
        or AlertField.FINGERPRINT in mapping.rules.joins
        or AlertField.FINGERPRINT in sample
    )
    if not has_identity and not automatic_fingerprint:
        return _UNGROUPED
    return None


def resolves_seldom(mapping: FieldMapping, sample: Mapping[str, object]) -> str | None:
    """Return what a recovery has to repeat to find its alert, if that is a lot; else None."""
    has_identity = (
        AlertField.FINGERPRINT in mapping.paths
        or AlertField.FINGERPRINT in mapping.rules.joins
        or AlertField.FINGERPRINT in sample
    )
    if has_identity or not mapping.rules.resolved_when:
        return None
    rules = ", ".join(dict.fromkeys(shown(rule.path) for rule in mapping.rules.resolved_when))
    return (
        f"No fingerprint is mapped, so a recovery resolves an alert only if all of its values but "
        f"{rules} and the times are the same. Choose what identifies the alert as the fingerprint."
    )
