"""Requests to send again and again, and what each should be answered."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

#: Stands in a request for what differs from one to the next.
HOLE = "\x00"
#: How long the numbers of Mode.COUNT are.
COUNTED = "0" * 17
#: Many more than connections: a chain waits while its newest token is on its way.
CHAINS = 64


class Mode(StrEnum):
    """Where the value in the hole comes from."""

    SAME = "same"
    #: A number that nobody has sent before.
    COUNT = "count"
    #: One value after the other, and from the start again.
    ROTATE = "rotate"
    #: Each value once.
    ONCE = "once"
    #: Each value once; the answer has one that can follow it.
    CHAIN = "chain"


class Magazine:
    """Values that can be used once: each run takes its share."""

    def __init__(self, values: Sequence[str]) -> None:
        self.every = values
        self._taken = 0

    def take(self, count: int) -> Sequence[str]:
        """Return the next ones; fewer, or none, at the end."""
        taken = self.every[self._taken : self._taken + count]
        self._taken += len(taken)
        return taken


def refresh_token_in(text: str) -> str:
    """Return the refresh token of an answer, or an empty text."""
    found = re.search(r'"refresh_token"\s*:\s*"([^"]+)"', text)
    return found[1] if found else ""


@dataclass(frozen=True, kw_only=True)
class Shot:
    """A request with a hole, and what to expect."""

    method: str
    path: str
    headers: Mapping[str, str] = field(default_factory=dict)
    body: str = ""
    mode: Mode = Mode.SAME
    values: Magazine = field(default_factory=lambda: Magazine(()))
    #: How many values a second of a run takes along; they need not all be used.
    values_a_second: int = 0
    #: The right statuses, each with texts of which the body must have one (without white space).
    expected: Mapping[int, Sequence[str]] = field(default_factory=lambda: {200: ()})
    #: Lua's pattern of the value that follows, in an answer's body.
    successor: str = '"refresh_token"%s*:%s*"([^"]+)"'

    @property
    def looks(self) -> bool:
        """Tell whether each answer has to be looked at while the load lasts."""
        return set(self.expected) != {200} or self.mode in {Mode.ONCE, Mode.CHAIN}

    def is_right(self, status: int, body: str) -> bool:
        """Return whether an answer is one of the expected ones."""
        texts = self.expected.get(status)
        dense = "".join(body.split())
        return texts is not None and (not texts or any(text in dense for text in texts))

    def values_for(self, seconds: int) -> Sequence[str]:
        """Return the values for a run."""
        if self.mode is Mode.ROTATE:
            return self.values.every
        chains = self.mode is Mode.CHAIN
        return self.values.take(CHAINS if chains else self.values_a_second * seconds)

    def parts(self, host: str, sample: str) -> Sequence[str]:
        """Return the request cut at its holes; all values are as long as the sample."""
        length = len(self.body.replace(HOLE, sample).encode())
        lines = [f"{self.method} {self.path} HTTP/1.1", f"Host: {host}"]
        lines += [f"{name}: {value}" for name, value in self.headers.items()]
        lines += [f"Content-Length: {length}"] if self.body else []
        return ("\r\n".join(lines) + "\r\n\r\n" + self.body).split(HOLE)
