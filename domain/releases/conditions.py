"""Conditions on the parameters of a call.

A condition is data that can be asked: what it names is looked for in programs as well.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

#: Values of query and body by name; of a value that is no text, its JSON text.
Parameters = Mapping[str, str]


#: No attribute of the schedule is deeper.
_DEEPEST = 4
_BRACKETS = re.compile(r"\[(\w*)\]")


def nested_names(given: Mapping[str, Any]) -> Iterator[str]:
    """Yield the dotted names of members below parameters, with `[]` for the items of a list.

    `assets[links][][url]` of a form is `assets.links[].url`, as in a JSON body.
    """
    for name, value in given.items():
        if "[" in name:
            yield _BRACKETS.sub(lambda found: f".{found[1]}" if found[1] else "[]", name)
        elif isinstance(value, dict | list):
            yield from _below(name, value, _DEEPEST)


def _below(name: str, value: Any, depth: int) -> Iterator[str]:
    if depth == 0:
        return
    if isinstance(value, list):
        for each in value:
            yield from _below(f"{name}[]", each, depth - 1)
    elif isinstance(value, dict):
        for key, each in value.items():
            yield f"{name}.{key}"
            yield from _below(f"{name}.{key}", each, depth - 1)


class Condition(Protocol):
    """What the parameters of a call have to be."""

    @property
    def names(self) -> tuple[str, ...]:
        """Return the parameters that it looks at."""
        ...

    def __call__(self, parameters: Parameters) -> bool:
        """Return whether a call with these parameters is concerned."""
        ...


@dataclass(frozen=True)
class Given:
    """At least one of the parameters is given."""

    names: tuple[str, ...]

    def __init__(self, *names: str) -> None:
        """Take the names."""
        object.__setattr__(self, "names", names)

    def __call__(self, parameters: Parameters) -> bool:
        """Return whether one of them is there."""
        return not parameters.keys().isdisjoint(self.names)

    def __str__(self) -> str:
        """Return it in words."""
        return f"parameter {', '.join(self.names)}"


@dataclass(frozen=True)
class Missing:
    """A parameter is not given, or empty."""

    name: str

    @property
    def names(self) -> tuple[str, ...]:
        """Return the parameter."""
        return (self.name,)

    def __call__(self, parameters: Parameters) -> bool:
        """Return whether it is not there."""
        return parameters.get(self.name, "") in {"", "null"}

    def __str__(self) -> str:
        """Return it in words."""
        return f"without {self.name}"


@dataclass(frozen=True)
class AboveOne:
    """A number is above 1, as those of all pages but the first."""

    name: str

    @property
    def names(self) -> tuple[str, ...]:
        """Return the parameter."""
        return (self.name,)

    def __call__(self, parameters: Parameters) -> bool:
        """Return whether it is a number above 1."""
        value = parameters.get(self.name, "")
        return value.isascii() and value.isdigit() and value.lstrip("0") not in {"", "1"}

    def __str__(self) -> str:
        """Return it in words."""
        return f"{self.name} above 1"


@dataclass(frozen=True)
class Longer:
    """One of the parameters has more characters than a limit."""

    limit: int
    names: tuple[str, ...]

    def __init__(self, limit: int, *names: str) -> None:
        """Take the most characters that are allowed, and the names."""
        object.__setattr__(self, "limit", limit)
        object.__setattr__(self, "names", names)

    def __call__(self, parameters: Parameters) -> bool:
        """Return whether one of them is longer."""
        return any(len(parameters.get(name, "")) > self.limit for name in self.names)

    def __str__(self) -> str:
        """Return it in words."""
        return f"{', '.join(self.names)} over {self.limit} characters"


@dataclass(frozen=True)
class Shorter:
    """A parameter is given, and has fewer characters than a limit."""

    limit: int
    name: str

    @property
    def names(self) -> tuple[str, ...]:
        """Return the parameter."""
        return (self.name,)

    def __call__(self, parameters: Parameters) -> bool:
        """Return whether it is shorter."""
        return 0 < len(parameters.get(self.name, "")) < self.limit

    def __str__(self) -> str:
        """Return it in words."""
        return f"{self.name} under {self.limit} characters"


@dataclass(frozen=True)
class FilteredUnlikeSorted:
    """A list is filtered by one time and sorted by another."""

    filters: tuple[str, ...]
    sort: str
    by: str

    @property
    def names(self) -> tuple[str, ...]:
        """Return the filters and the parameter of the order."""
        return (*self.filters, self.sort)

    def __call__(self, parameters: Parameters) -> bool:
        """Return whether the filter is there without the order, or the order without the filter."""
        is_filtered = not parameters.keys().isdisjoint(self.filters)
        return is_filtered != (parameters.get(self.sort) == self.by)

    def __str__(self) -> str:
        """Return it in words."""
        return f"{' or '.join(self.filters)} without {self.sort}={self.by}, or the reverse"
