"""Finds the scheduled changes that affect an HTTP call."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from domain.releases.changes import CallPattern, Change
from domain.releases.conditions import Parameters
from domain.releases.schedule import SCHEDULE

_VARIABLE_PATTERN = re.compile(r":[a-z_]+")


@dataclass(frozen=True)
class CallMatch:
    """A change that affects a call, with the matching call pattern."""

    change: Change
    call: CallPattern

    @property
    def is_sure(self) -> bool:
        """True if the call is affected regardless of how the caller uses the response."""
        return not self.call.fields or bool(self.call.attributes)

    @property
    def rejects_call(self) -> bool:
        """True if the service rejects the call as of the change's release."""
        return self.is_sure and not self.change.is_strict


@cache
def compile_path_pattern(path: str) -> re.Pattern[str]:
    """Return the regular expression for the URL paths that match a path in the schedule."""
    literal = re.escape(path).replace(r"\*", ".*")
    return re.compile(_VARIABLE_PATTERN.sub("[^/]+", literal))


def find_call_matches(method: str, path: str) -> Iterator[CallMatch]:
    """Yield the schedule entries that match a method and a URL path, ignoring parameters."""
    for change in SCHEDULE:
        for call in change.call_patterns:
            if _matches_call(call, method, path):
                yield CallMatch(change, call)


def _matches_call(call: CallPattern, method: str, path: str) -> bool:
    if call.methods and method not in call.methods:
        return False
    if any(part in path for part in call.unless):
        return False
    return compile_path_pattern(call.path).fullmatch(path) is not None


def is_affected_by_parameters(call: CallPattern, parameters: Parameters) -> bool:
    """Return whether a change affects calls with the given parameters, ignoring response fields."""
    if call.when is not None:
        return call.when(parameters)
    if call.attributes:
        return not parameters.keys().isdisjoint(call.attributes)
    return not call.fields
