"""Conditions on the parameters of a call.

A condition is data that can be inspected. For example, the checker searches programs for the names
in conditions.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

#: Values in the query and the body by name. A value that is not a string is represented as JSON.
Parameters = Mapping[str, str]


#: Maximum depth of nested attributes in the schedule.
_MAX_DEPTH = 4
_BRACKETS_PATTERN = re.compile(r"\[(\w*)\]")


def list_nested_names(given_values: Mapping[str, Any]) -> Iterator[str]:
    """Yield the dotted names of nested parameters, with `[]` for the items of a list.

    The form parameter `assets[links][][url]` becomes `assets.links[].url`, as in a JSON body.
    """
    for name, value in given_values.items():
        if "[" in name:
            yield _BRACKETS_PATTERN.sub(lambda found: f".{found[1]}" if found[1] else "[]", name)
        elif isinstance(value, dict | list):
            yield from _list_nested_names_below(name, value, _MAX_DEPTH)


def _list_nested_names_below(name: str, value: Any, depth: int) -> Iterator[str]:
    if depth == 0:
        return
    if isinstance(value, list):
        for each in value:
            yield from _list_nested_names_below(f"{name}[]", each, depth - 1)
    elif isinstance(value, dict):
        for key, each in value.items():
            yield f"{name}.{key}"
            yield from _list_nested_names_below(f"{name}.{key}", each, depth - 1)


class Condition(Protocol):
    """The interface of conditions on the parameters of a call."""

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """The names of the parameters that the condition checks."""
        ...

    def __call__(self, parameters: Parameters) -> bool:
        """Return whether a call with the parameters meets the condition."""
        ...


@dataclass(frozen=True)
class ParameterGiven:
    """The condition that at least one of several parameters is given."""

    parameter_names: tuple[str, ...]

    def __init__(self, *names: str) -> None:
        """Store the parameter names."""
        object.__setattr__(self, "parameter_names", names)

    def __call__(self, parameters: Parameters) -> bool:
        """Return whether at least one of the parameters is given."""
        return not parameters.keys().isdisjoint(self.parameter_names)

    def __str__(self) -> str:
        """Return the condition in words."""
        return f"parameter {', '.join(self.parameter_names)}"


@dataclass(frozen=True)
class ParameterMissing:
    """The condition that a parameter is missing or empty."""

    name: str

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """The name of the parameter, as a tuple with one item."""
        return (self.name,)

    def __call__(self, parameters: Parameters) -> bool:
        """Return whether the parameter is missing or empty."""
        return parameters.get(self.name, "") in {"", "null"}

    def __str__(self) -> str:
        """Return the condition in words."""
        return f"without {self.name}"


@dataclass(frozen=True)
class NumberAboveOne:
    """The condition that a numeric parameter is above 1, such as the number of a later page."""

    name: str

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """The name of the parameter, as a tuple with one item."""
        return (self.name,)

    def __call__(self, parameters: Parameters) -> bool:
        """Return whether the parameter is a number above 1."""
        value = parameters.get(self.name, "")
        return value.isascii() and value.isdigit() and value.lstrip("0") not in {"", "1"}

    def __str__(self) -> str:
        """Return the condition in words."""
        return f"{self.name} above 1"


@dataclass(frozen=True)
class TextTooLong:
    """The condition that at least one parameter exceeds a maximum length in characters."""

    limit: int
    parameter_names: tuple[str, ...]

    def __init__(self, limit: int, *names: str) -> None:
        """Store the maximum length and the parameter names."""
        object.__setattr__(self, "limit", limit)
        object.__setattr__(self, "parameter_names", names)

    def __call__(self, parameters: Parameters) -> bool:
        """Return whether at least one of the parameters is longer than the maximum."""
        return any(len(parameters.get(name, "")) > self.limit for name in self.parameter_names)

    def __str__(self) -> str:
        """Return the condition in words."""
        return f"{', '.join(self.parameter_names)} over {self.limit} characters"


@dataclass(frozen=True)
class TextTooShort:
    """The condition that a parameter is given, but is shorter than a minimum in characters."""

    limit: int
    name: str

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """The name of the parameter."""
        return (self.name,)

    def __call__(self, parameters: Parameters) -> bool:
        """Return whether the parameter is given, but is shorter than the minimum."""
        return 0 < len(parameters.get(self.name, "")) < self.limit

    def __str__(self) -> str:
        """Return the condition in words."""
        return f"{self.name} under {self.limit} characters"


@dataclass(frozen=True)
class FilterSortMismatch:
    """The condition that a list is filtered by one time and sorted by another time."""

    filters: tuple[str, ...]
    sort: str
    by: str

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """The names of the filters and of the sort parameter."""
        return (*self.filters, self.sort)

    def __call__(self, parameters: Parameters) -> bool:
        """Return whether either a filter or the sort order is given, but not both."""
        is_filtered = not parameters.keys().isdisjoint(self.filters)
        return is_filtered != (parameters.get(self.sort) == self.by)

    def __str__(self) -> str:
        """Return the condition in words."""
        return f"{' or '.join(self.filters)} without {self.sort}={self.by}, or the reverse"
