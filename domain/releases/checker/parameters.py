"""Whether a condition of the schedule holds for parameters of which some are not known."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import singledispatch
from typing import Any
from urllib.parse import parse_qsl

from domain.releases.checker.routes import UNKNOWN
from domain.releases.conditions import (
    AboveOne,
    Condition,
    FilteredUnlikeSorted,
    Given,
    Longer,
    Missing,
    Shorter,
)

#: How a value begins that is known only when a program runs.
_VARIABLES = ("$", "{", "<", "%", "#{", UNKNOWN)
#: More parameters than a request has.
_MOST = 1_000


@dataclass
class Known:
    """What is known of the parameters of a request."""

    #: By name; None for a value that is known only when the program runs.
    values: dict[str, str | None] = field(default_factory=dict)
    #: Whether there may be others.
    is_open: bool = False

    def add_query(self, text: str) -> None:
        """Add the parameters of a query or a form."""
        try:
            pairs = parse_qsl(text, keep_blank_values=True, max_num_fields=_MOST)
        except ValueError:
            self.is_open = True
            return
        for name, value in pairs:
            self.add(name, value)

    def add(self, name: str, value: str | None) -> None:
        """Add a parameter; `name[]` is an item of the list `name`."""
        if len(self.values) < _MOST:
            is_known = value is not None and not value.startswith(_VARIABLES)
            self.values[name.removesuffix("[]")] = value if is_known else None

    def add_object(self, given: Mapping[str, Any]) -> None:
        """Add the members of a JSON object."""
        for name, value in given.items():
            if value is not None:
                self.add(name, value if isinstance(value, str) else str(value))


@singledispatch
def holds(condition: Condition, known: Known) -> bool:
    """Return whether a condition surely holds."""
    return not known.is_open and condition(_texts(known))


def _texts(known: Known) -> dict[str, str]:
    return {name: value for name, value in known.values.items() if value is not None}


@holds.register
def _(condition: Given, known: Known) -> bool:
    return not known.values.keys().isdisjoint(condition.names)


@holds.register
def _(condition: Missing, known: Known) -> bool:
    if known.is_open or known.values.get(condition.name, "") is None:
        return False
    return condition(_texts(known))


@holds.register
def _(condition: AboveOne, known: Known) -> bool:
    """Return whether the number is above 1; one that changes while the program runs gets there."""
    if condition.name not in known.values:
        return False
    return known.values[condition.name] is None or condition(_texts(known))


@holds.register(Longer)
@holds.register(Shorter)
def _(condition: Condition, known: Known) -> bool:
    return condition(_texts(known))


@holds.register
def _(condition: FilteredUnlikeSorted, known: Known) -> bool:
    order = known.values.get(condition.sort, "")
    is_filtered = not known.values.keys().isdisjoint(condition.filters)
    if order is None or (known.is_open and is_filtered != (order == condition.by)):
        # What is not known may be the filter, or the order, that is missing.
        return False
    return is_filtered != (order == condition.by)
