"""Imaginary monitoring tools, whose keys have random names, notations and depths."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

_STATES = (
    ("open", "closed"),
    ("alerting", "ok"),
    ("down", "up"),
    ("failing", "passing"),
    ("problem", "recovery"),
    ("triggered", "resolved"),
    ("active", "inactive"),
    ("red", "green"),
    ("firing", "resolved"),
    ("unhealthy", "healthy"),
)
#: Notations of keys, from their words.
_NOTATIONS: Sequence[Callable[[Sequence[str]], str]] = (
    "_".join,
    "-".join,
    ".".join,
    " ".join,
    lambda words: words[0] + "".join(map(str.capitalize, words[1:])),
    lambda words: "".join(map(str.capitalize, words)),
    lambda words: "_".join(words).upper(),
)
_WRAPPERS = ("data", "payload", "body", "details", "metadata")


@dataclass(frozen=True)
class Tool:
    """An imaginary tool, which renders the messages of an alert."""

    notation: Callable[[Sequence[str]], str]
    wrappers: Sequence[str]
    host_key: Sequence[str]
    rule_key: Sequence[str]
    title_key: Sequence[str]
    state_key: Sequence[str]
    states: tuple[str, str]
    is_upper: bool

    def message(self, number: int, *, host: str = "web-1", over: bool = False) -> dict[str, Any]:
        """Return a message. Its number makes its identifier, times and counters unique."""
        state = self.states[over]
        values: Mapping[Sequence[str], object] = {
            ("message", "id"): f"7c9e6679-7425-40de-944b-e07fc1f9{number:04}",
            self.title_key: "Disk is almost full",
            self.rule_key: "disk-usage",
            self.host_key: host,
            self.state_key: state.upper() if self.is_upper else state,
            ("sent", "at"): f"2026-11-29T10:{number:02}:00Z",
            ("duration", "seconds"): 60 * number,
            ("attempt", "count"): number,
        }
        payload: dict[str, Any] = {self.notation(key): values[key] for key in values}
        for wrapper in self.wrappers:
            payload = {wrapper: payload}
        return payload


#: Tools with random names of keys, notations, depths and words of states.
TOOLS = st.builds(
    Tool,
    notation=st.sampled_from(_NOTATIONS),
    wrappers=st.lists(st.sampled_from(_WRAPPERS), max_size=2, unique=True),
    host_key=st.sampled_from([("host",), ("host", "name"), ("instance",), ("server", "name")]),
    rule_key=st.sampled_from([("rule", "name"), ("check", "id"), ("monitor", "name")]),
    title_key=st.sampled_from([("title",), ("alert", "title"), ("summary",), ("message",)]),
    state_key=st.sampled_from([("status",), ("alert", "state"), ("current", "status")]),
    states=st.sampled_from(_STATES),
    is_upper=st.booleans(),
)
