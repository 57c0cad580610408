"""Collects the warnings of a delivery, one sentence for each rejected item or assumption."""

from collections.abc import Sequence
from itertools import zip_longest

from domain.alerts.parsing.incoming_alert import NoValidItemError, ParsedBody, RejectedAlertItem
from domain.core.errors import DomainError

#: Maximum number of warnings that are stored with one delivery.
MAX_WARNINGS = 100


def collect_parse_warnings(
    parsed: ParsedBody, outcome_warnings: Sequence[str | None] = ()
) -> list[str]:
    """Return the warnings for a body, then for rejected items, then for each alert.

    `outcome_warnings` contains one entry for each alert: a sentence about an unexpected result of
    storing the alert, or None. If the body has several items, warnings about an item contain the
    item's number.
    """
    warnings = list(parsed.parse_warnings)
    if parsed.refused:
        warnings += _describe_rejected_items(parsed.refused)
    is_batch = len(parsed.alerts) + len(parsed.refused) > 1
    for alert, outcome_warning in zip_longest(parsed.alerts, outcome_warnings):
        prefix = f"Item {alert.item_index + 1}: " if is_batch else ""
        own = (*alert.parse_warnings, outcome_warning) if outcome_warning else alert.parse_warnings
        warnings.extend(prefix + warning for warning in own)
    return warnings if len(warnings) <= MAX_WARNINGS else _limit_warnings(warnings)


def collect_error_warnings(error: DomainError) -> list[str]:
    """Return the reason for each rejected item of a NoValidItemError, or an empty list."""
    if not isinstance(error, NoValidItemError):
        return []
    warnings = _describe_rejected_items(error.refused)
    return warnings if len(warnings) <= MAX_WARNINGS else _limit_warnings(warnings)


def _describe_rejected_items(refused: Sequence[RejectedAlertItem]) -> list[str]:
    return [f"Item {each.item_index + 1} was rejected: {each.reason}" for each in refused]


def _limit_warnings(warnings: list[str]) -> list[str]:
    first = warnings[: MAX_WARNINGS - 1]
    return [*first, f"And {len(warnings) - len(first)} more warnings, which are not stored."]
