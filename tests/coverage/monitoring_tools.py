"""Writes docs/evidence/monitoring-tools.md: the values that are read from messages of each tool."""

import sys
from collections.abc import Iterator

from domain.alerts.integrations.mapping_types import ReadMessage
from tests.support.alerts.tool_messages import MODULES, ToolMessages, load_messages

_INTRODUCTION = """\
# Monitoring tools

This page lists the {count} tools that Gatebell recognizes by name. For each tool, it shows the
values that are read from a message about a problem, and what a repeated message and the recovery
do. `make docs` generates the page from the messages in `tests/payloads/messages/`, which name their
sources.

| tool | title | severity | hosts | repeat | recovery |
|---|---|---|---|---|---|
"""


def document() -> str:
    """Return the text of docs/evidence/monitoring-tools.md."""
    tools = sorted(map(load_messages, MODULES), key=lambda each: each.tool.casefold())
    return _INTRODUCTION.format(count=len(tools)) + "".join(map(_format_row, tools))


def _format_row(messages: ToolMessages) -> str:
    found, alert = messages.recognize(), messages.read_one(messages.firing)
    cells = (
        *(str(found.proposal.tool), alert.title, alert.severity, ", ".join(alert.hosts)),
        *_describe_effects(found.repeat, found.recovery),
    )
    return f"| {' | '.join(' '.join(cell.replace('|', '&#124;').split()) for cell in cells)} |\n"


def _describe_effects(repeat: ReadMessage | None, recovery: ReadMessage | None) -> Iterator[str]:
    for message, effect in ((repeat, "joins"), (recovery, "resolves")):
        if message is None:
            yield "not sent"
        else:
            yield effect if getattr(message, effect) else message.sentence


def main() -> None:
    """Print the document."""
    sys.stdout.write(document())


if __name__ == "__main__":
    main()
