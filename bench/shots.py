"""Requests that are sent repeatedly, and their expected responses."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

#: Placeholder in a request for a value that differs between requests.
VALUE_PLACEHOLDER = "\x00"
#: Placeholder value that defines the number of digits in ValueMode.COUNT.
COUNT_PLACEHOLDER = "0" * 17
#: Number of chains, far above the number of connections: a chain waits while its newest token is in
#: transit.
CHAIN_COUNT = 64


class ValueMode(StrEnum):
    """The source of the values for the placeholder."""

    SAME = "same"
    #: A number that has not been sent before.
    COUNT = "count"
    #: The values in turn, starting again at the end.
    ROTATE = "rotate"
    #: Each value once.
    ONCE = "once"
    #: Each value once. The response contains the next value.
    CHAIN = "chain"


class OneTimeValues:
    """Values that can be used once: each run takes its share."""

    def __init__(self, values: Sequence[str]) -> None:
        self.every = values
        self._taken = 0

    def take(self, count: int) -> Sequence[str]:
        """Return the next values, or fewer at the end."""
        taken = self.every[self._taken : self._taken + count]
        self._taken += len(taken)
        return taken


def find_refresh_token(text: str) -> str:
    """Return the refresh token of a response, or an empty string."""
    found = re.search(r'"refresh_token"\s*:\s*"([^"]+)"', text)
    return found[1] if found else ""


@dataclass(frozen=True, kw_only=True)
class Shot:
    """A request with placeholders, and its expected responses."""

    method: str
    path: str
    headers: Mapping[str, str] = field(default_factory=dict)
    body: str = ""
    mode: ValueMode = ValueMode.SAME
    values: OneTimeValues = field(default_factory=lambda: OneTimeValues(()))
    #: Number of values that a run takes per second. They need not all be used.
    values_a_second: int = 0
    #: Correct statuses, each with texts of which the body must contain one (ignoring whitespace).
    expected: Mapping[int, Sequence[str]] = field(default_factory=lambda: {200: ()})
    #: Lua pattern for the next value in a response's body.
    successor: str = '"refresh_token"%s*:%s*"([^"]+)"'

    @property
    def looks(self) -> bool:
        """True if each response must be examined during the load."""
        return set(self.expected) != {200} or self.mode in {ValueMode.ONCE, ValueMode.CHAIN}

    def is_right(self, status: int, body: str) -> bool:
        """Return whether a response is correct."""
        texts = self.expected.get(status)
        dense = "".join(body.split())
        return texts is not None and (not texts or any(text in dense for text in texts))

    def values_for(self, seconds: int) -> Sequence[str]:
        """Return the values for a run."""
        if self.mode is ValueMode.ROTATE:
            return self.values.every
        chains = self.mode is ValueMode.CHAIN
        return self.values.take(CHAIN_COUNT if chains else self.values_a_second * seconds)

    def parts(self, host: str, sample: str) -> Sequence[str]:
        """Return the request split at its placeholders; values are as long as the sample."""
        length = len(self.body.replace(VALUE_PLACEHOLDER, sample).encode())
        lines = [f"{self.method} {self.path} HTTP/1.1", f"Host: {host}"]
        lines += [f"{name}: {value}" for name, value in self.headers.items()]
        lines += [f"Content-Length: {length}"] if self.body else []
        return ("\r\n".join(lines) + "\r\n\r\n" + self.body).split(VALUE_PLACEHOLDER)
