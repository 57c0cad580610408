"""What became of each thing of an export."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from domain.importing.plan import LeftOut


class Outcome(StrEnum):
    """What became of something."""

    CREATED = "created"
    #: It was there already, and stays as it is.
    EXISTS = "exists"
    LEFT_OUT = "left out"


@dataclass(kw_only=True)
class Entry:
    """One thing of an export."""

    kind: str
    name: str
    outcome: Outcome
    #: The path of a project.
    project: str | None = None
    #: In what it differs, or why it is left out.
    notes: list[str] = field(default_factory=list)
    #: Such as the URL of an integration.
    details: dict[str, Any] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """Return its members."""
        found: dict[str, Any] = {"name": self.name, "outcome": self.outcome.value}
        if self.project is not None:
            found["project"] = self.project
        return {**found, **self.details, "notes": self.notes}


_LISTS = {
    "user": "users",
    "schedule": "schedules",
    "policy": "policies",
    "integration": "integrations",
}


def report_of(
    entries: Sequence[Entry], left_out: Sequence[LeftOut], *, is_dry_run: bool
) -> dict[str, Any]:
    """Return the report of an import as one JSON object."""
    counts = Counter(each.outcome for each in entries)
    counts[Outcome.LEFT_OUT] += len(left_out)
    return {
        "dry_run": is_dry_run,
        "summary": {each.value.replace(" ", "_"): counts[each] for each in Outcome},
        **{
            plural: [each.as_json() for each in entries if each.kind == kind]
            for kind, plural in _LISTS.items()
        },
        "left_out": [
            {"kind": each.kind, "name": each.name, "reason": each.reason} for each in left_out
        ],
    }
