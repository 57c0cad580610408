"""Results of stored deliveries, for responses to senders and for the delivery log."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from domain.alerts.parsing.incoming_alert import ParsedBody
from domain.alerts.parsing.parse_warnings import collect_parse_warnings
from domain.alerts.storing.lifecycle import Action, IntakePlan, StoredAlertOutcome


@dataclass(frozen=True, kw_only=True, slots=True)
class IntakeItem:
    """An alert that a delivery opened, updated or resolved, or that was already resolved."""

    iid: int
    title: str
    action: Action


@dataclass(frozen=True, kw_only=True, slots=True)
class IntakeResult:
    """A stored delivery and its alerts."""

    delivery_id: int
    #: Distinct alerts with their first actions, in the order of the body's items.
    items: tuple[IntakeItem, ...]
    #: One entry for each valid item of the body, in order. The same alert may occur several times.
    by_item: tuple[IntakeItem, ...]


def build_intake_result(decided: IntakePlan, delivery_id: int, iids: Sequence[int]) -> IntakeResult:
    """Return the result of a stored plan. `iids` are the numbers of the new alerts, in order."""
    by_item: list[IntakeItem] = []
    first: dict[int, IntakeItem] = {}
    for outcome in decided.outcomes:
        if isinstance(outcome, StoredAlertOutcome):
            iid, title = outcome.iid, outcome.title
        else:
            iid, title = iids[outcome.index], decided.new[outcome.index].incoming.title
        item = IntakeItem(iid=iid, title=title, action=outcome.action)
        by_item.append(item)
        first.setdefault(iid, item)
    items = tuple(first.values())
    return IntakeResult(delivery_id=delivery_id, items=items, by_item=tuple(by_item))


def build_outcome_values(decided: IntakePlan, parsed: ParsedBody) -> dict[str, object]:
    """Return the column values for the outcome of a delivery: status, counts and warnings."""
    counts = Counter(outcome.action for outcome in decided.outcomes)
    return {
        "status_code": 200,
        "opened": counts[Action.OPENED] + counts[Action.STORED_AS_RESOLVED],
        "joined": counts[Action.JOINED] + counts[Action.LATE],
        "resolved": counts[Action.RESOLVED],
        "remarks": collect_parse_warnings(
            parsed, [outcome.warning for outcome in decided.outcomes]
        ),
        "truncated_alerts": parsed.truncated_alerts,
        "dropped": parsed.dropped,
    }
