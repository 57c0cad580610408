"""Writes the tables in docs/escalation-states.md.

Run `python -m domain.paging.escalations.reporting.state_tables`.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol

from domain.paging.escalations.state import ESCALATION_TRANSITIONS
from domain.paging.notifications.states import MESSAGE_TRANSITIONS, PAGE_TRANSITIONS

_DOCUMENT_PATH = Path("docs/escalation-states.md")
TABLES_MARKER = "<!-- states -->\n"
_TABLE_HEAD = "| state | event | next state | what happens |\n|---|---|---|---|\n"


class _DescribedTransition(Protocol):
    @property
    def to(self) -> str:
        """The state after the transition."""

    @property
    def what(self) -> str:
        """Description of the transition's effect."""


def format_tables() -> str:
    """Return the state tables of escalations, pages and messages as Markdown."""
    parts = (
        ("Transitions of an escalation", _format_rows(ESCALATION_TRANSITIONS)),
        ("Transitions of a page", _format_rows(PAGE_TRANSITIONS)),
        ("Transitions of a message", _format_rows(MESSAGE_TRANSITIONS)),
    )
    return "\n".join(f"## {title}\n\n{_TABLE_HEAD}{''.join(rows)}" for title, rows in parts)


def _format_rows(moves: Mapping[Any, Mapping[Any, _DescribedTransition]]) -> Iterator[str]:
    for state, events in moves.items():
        for event, move in events.items():
            yield f"| {_format_state(state)} | {event} | {_format_state(move.to)} | {move.what} |\n"


def _format_state(state: str) -> str:
    return str(state).replace("_", " ").replace("cancelled", "canceled")


def replace_tables(text: str) -> str:
    """Replace the tables at the end of the document with the current tables."""
    before, _, _ = text.partition(TABLES_MARKER)
    return f"{before}{TABLES_MARKER}\n{format_tables()}"


if __name__ == "__main__":
    _DOCUMENT_PATH.write_text(
        replace_tables(_DOCUMENT_PATH.read_text(encoding="utf-8")), encoding="utf-8"
    )
