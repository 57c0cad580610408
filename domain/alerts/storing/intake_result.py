"""What a delivery did: for the answer to its sender, and for the log."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from domain.alerts.reading.incoming import ParsedBody
from domain.alerts.reading.parse_warnings import remarks_of
from domain.alerts.storing.lifecycle import Action, Answer, ExistingAnswer, Plan


@dataclass(frozen=True, kw_only=True, slots=True)
class ReceiptItem:
    """An alert that the delivery touched."""

    iid: int
    title: str
    action: Action


@dataclass(frozen=True, kw_only=True, slots=True)
class Receipt:
    """What a delivery did."""

    delivery_id: int
    #: One for each alert, in the order of the body's items.
    items: tuple[ReceiptItem, ...]
    #: One for each item that is an alert, in order.
    by_item: tuple[ReceiptItem, ...]


def receipt_of(decided: Plan, delivery_id: int, numbers: Sequence[int]) -> Receipt:
    """Return the receipt for what was decided; `numbers` are those of the new alerts."""
    by_item = tuple(_item(answer, decided, numbers) for answer in decided.answers)
    first: dict[int, ReceiptItem] = {}
    for item in by_item:
        first.setdefault(item.iid, item)
    return Receipt(delivery_id=delivery_id, items=tuple(first.values()), by_item=by_item)


def _item(answer: Answer, decided: Plan, numbers: Sequence[int]) -> ReceiptItem:
    if isinstance(answer, ExistingAnswer):
        return ReceiptItem(iid=answer.iid, title=answer.title, action=answer.action)
    title = decided.new[answer.index].incoming.title
    return ReceiptItem(iid=numbers[answer.index], title=title, action=answer.action)


def outcome_values(decided: Plan, parsed: ParsedBody) -> dict[str, Any]:
    """Return the columns of a delivery that tell what became of it."""
    counts = Counter(answer.action for answer in decided.answers)
    return {
        "status_code": 200,
        "opened": counts[Action.OPENED] + counts[Action.STORED_AS_RESOLVED],
        "joined": counts[Action.JOINED] + counts[Action.LATE],
        "resolved": counts[Action.RESOLVED],
        "remarks": remarks_of(parsed, [answer.remark for answer in decided.answers]),
        "truncated_alerts": parsed.truncated_alerts,
    }
