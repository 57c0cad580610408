"""Policies and waiting times in words."""

from collections.abc import Sequence
from datetime import timedelta

from domain.alerts.matching.conditions import Conditions
from domain.escalations.steps import TargetKind
from domain.silences.muting import Mute
from domain.silences.types import MuteKind

_UNITS = (
    (timedelta(days=1), "d"),
    (timedelta(hours=1), "h"),
    (timedelta(minutes=1), "min"),
    (timedelta(seconds=1), "s"),
)
_GONE = {
    TargetKind.USER: "a deleted user",
    TargetKind.SCHEDULE: "a deleted schedule",
    TargetKind.CHANNEL: "a deleted channel",
}


def length_words(length: timedelta) -> str:
    """Return a length of time, such as `1 h 30 min`."""
    parts, rest = [], length
    for size, unit in _UNITS:
        count, rest = divmod(rest, size)
        if count:
            parts.append(f"{count} {unit}")
    return " ".join(parts) or "0 s"


def target_words(kind: TargetKind, name: str | None) -> str:
    """Return whom a target pages; without a name it was deleted."""
    if name is None:
        return _GONE[kind]
    if kind is TargetKind.USER:
        return f"@{name}"
    return f"the people on call in {name}" if kind is TargetKind.SCHEDULE else f"channel {name}"


def step_words(after: timedelta, targets: Sequence[str]) -> str:
    """Return a step as a sentence."""
    when = f"After {length_words(after)}" if after else "Immediately"
    return f"{when}: {listed(targets)}."


def repeat_words(repeats: int, pause: timedelta) -> str:
    """Return how often the steps are repeated, as a sentence."""
    if not repeats:
        return "No repeats."
    times = "once" if repeats == 1 else f"{repeats} times"
    return f"Repeats {times}, {length_words(pause)} after the last step."


def listed(parts: Sequence[str]) -> str:
    """Return `a, b and c`."""
    *first, last = parts or ("nobody",)
    return f"{', '.join(first)} and {last}" if first else last


def conditions_words(conditions: Conditions) -> str:
    """Return which alerts meet conditions, as the subject of a sentence."""
    severities = f"{_either(conditions.severities)} alerts" if conditions.severities else "Alerts"
    parts = [severities[0].upper() + severities[1:]]
    if conditions.environments:
        parts.append(f"of environment {_either(conditions.environments)}")
    if conditions.services:
        parts.append(f"of service {_either(conditions.services)}")
    if conditions.labels:
        parts.append(f"with {conditions.labels_text}")
    return " ".join(parts) if len(parts) > 1 or conditions.severities else "All alerts"


def _either(words: Sequence[str]) -> str:
    *first, last = words
    return f"{', '.join(first)} or {last}" if first else last


#: Before the name of a mute.
_MUTE_WORDS = {
    MuteKind.SILENCE: "silence “{}”",
    MuteKind.MAINTENANCE: "maintenance window “{}”",
    MuteKind.FLAPPING: "the alert is flapping, {}",
    MuteKind.REOPENED: "the alert {}",
}


def mute_words(mute: Mute) -> str:
    """Return why an alert is muted, as a part of a sentence."""
    return _MUTE_WORDS[mute.kind].format(mute.name.rstrip("."))
