"""What an entry of the timeline says, as a sentence without its subject."""

from collections.abc import Callable, Mapping
from typing import Any

from domain.incidents.timeline import EntryKind, TimelineEntry

_Details = Mapping[str, Any]


def _alerts(details: _Details) -> str:
    numbers = ", ".join(f"#{iid}" for iid in details.get("alerts", ()))
    left_out = details.get("count", 0) - len(details.get("alerts", ()))
    noun = "alert" if details.get("count") == 1 else "alerts"
    return f"{noun} {numbers}" + (f" and {left_out:,} more" if left_out > 0 else "")


def _opened(details: _Details) -> str:
    by = f" by the rule “{details['rule']}”" if details.get("rule") else ""
    source = f" from {_alerts(details)}" if details.get("count") else ""
    return f"opened{by}{source}"


def _joined(details: _Details) -> str:
    if details.get("rule"):
        return f"added {_alerts(details)}: the rule “{details['rule']}” opened many incidents"
    return f"added {_alerts(details)}, received again"


def _status(details: _Details) -> str:
    new, old = details["new"], details["old"]
    verb = {"acknowledged": "acknowledged it", "resolved": "closed it"}.get(new, "reopened it")
    if new == "triggered" and old == "acknowledged":
        verb = "withdrew the acknowledgement"
    if details.get("because"):
        return f"closed it: {details['because']}"
    count = details.get("count", 0)
    what = f" and its {count:,} {'alert' if count == 1 else 'alerts'}" if count else ""
    return verb.replace(" it", f" it{what}")


_SENTENCES: Mapping[EntryKind, Callable[[_Details], str]] = {
    EntryKind.OPENED: _opened,
    EntryKind.JOINED: _joined,
    EntryKind.LINKED: lambda details: f"linked {_alerts(details)}",
    EntryKind.UNLINKED: lambda details: f"unlinked {_alerts(details)}",
    EntryKind.STATUS: _status,
    EntryKind.SEVERITY: lambda details: (
        f"changed the severity from {details['old']} to {details['new']}"
    ),
    EntryKind.TITLE: lambda details: (
        f"changed the title from “{details['old']}” to “{details['new']}”"
    ),
    EntryKind.DESCRIPTION: lambda _details: "changed the description",
    EntryKind.CLOSING: lambda details: (
        "turned closing with its alerts " + ("on" if details["new"] else "off")
    ),
}


def sentence_of(entry: TimelineEntry) -> str:
    """Return what happened, such as `closed it and its 2 alerts`; a comment is its text."""
    if entry.kind is EntryKind.NOTE:
        return entry.text
    if entry.kind in {EntryKind.ASSIGNED, EntryKind.UNASSIGNED}:
        return f"{entry.kind.value} @{entry.text}"
    return _SENTENCES[entry.kind](entry.details)
