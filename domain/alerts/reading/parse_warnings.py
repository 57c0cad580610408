"""What a maintainer should know about how a body was read: a sentence each."""

from collections.abc import Sequence
from itertools import zip_longest

from domain.alerts.reading.incoming import NoValidItem, ParsedBody, RefusedItem
from domain.errors import DomainError

#: A body of 5,000 bad items need not say so 5,000 times.
MOST_REMARKS = 100


def remarks_of(parsed: ParsedBody, on_fates: Sequence[str | None] = ()) -> list[str]:
    """Return what is worth knowing of a body that was taken, what was refused of it first.

    `on_fates` has for each alert, if anything, what became of it that its sender may not expect.
    """
    remarks = [*parsed.remarks, *_on_refused(parsed.refused)]
    is_batch = len(parsed.alerts) + len(parsed.refused) > 1
    for alert, on_fate in zip_longest(parsed.alerts, on_fates):
        prefix = f"Item {alert.item_index + 1}: " if is_batch else ""
        own = (*alert.remarks, on_fate) if on_fate else alert.remarks
        remarks.extend(prefix + remark for remark in own)
    return _kept(remarks)


def remarks_on(error: DomainError) -> list[str]:
    """Return what was wrong with each item, if that is why a body was refused."""
    return _kept(_on_refused(error.refused)) if isinstance(error, NoValidItem) else []


def _on_refused(refused: Sequence[RefusedItem]) -> list[str]:
    return [f"Item {each.item_index + 1} was refused: {each.reason}" for each in refused]


def _kept(remarks: list[str]) -> list[str]:
    if len(remarks) <= MOST_REMARKS:
        return remarks
    shown = remarks[: MOST_REMARKS - 1]
    return [*shown, f"And {len(remarks) - len(shown)} more remarks, which are not kept."]
