"""Writes docs/evidence/monitoring-tools.md: the setup of each tool, and what its messages do."""

import re
import sys
from collections.abc import Iterable, Iterator, Sequence

from domain.alerts.formats.registry import FORMATS
from domain.alerts.integrations.mapping_types import ReadMessage
from tests.support.alerts.tool_messages import MODULES, ToolMessages, load_messages

_INTRODUCTION = """\
# Monitoring tools

Gatebell recognizes {count} kinds of messages of monitoring tools by their keys. `make docs`
generates this page from `domain/alerts/tools/` and from the messages in `tests/payloads/messages/`,
which name their sources.

## Setup

An integration of the type HTTP Endpoint has a mapping for its tool. Grafana, Alertmanager and
programs that post to an Alertmanager need the type Prometheus Alertmanager.
"""
_MESSAGES = """
## Messages

This table shows the values that are read from a message about a problem. It also shows what a
repeated message and the recovery do.
"""


def document() -> str:
    """Return the text of docs/evidence/monitoring-tools.md."""
    tools = {tool.name: tool for each in FORMATS for tool in each.list_tools()}
    names = sorted(tools, key=str.casefold)
    messages = {each.tool: each for each in map(load_messages, MODULES)}
    setup = [(name, tools[name].hint, _link_guide(tools[name].guide)) for name in names]
    effects = [(name, *_describe_messages(messages[name])) for name in names]
    return (
        _INTRODUCTION.format(count=len(names))
        + _format_table(("tool", "how to connect it", "guide"), setup)
        + _MESSAGES
        + _format_table(("tool", "title", "severity", "hosts", "repeat", "recovery"), effects)
    )


def _link_guide(name: str) -> str:
    return f"[{name}](../guides/{name}.md)" if name else ""


def _describe_messages(messages: ToolMessages) -> Iterator[str]:
    found, alert = messages.recognize(), messages.read_one(messages.firing)
    yield from (alert.title, alert.severity, ", ".join(alert.hosts))
    yield from (
        _describe_effect(found.preview.repeat, "joins"),
        _describe_effect(found.preview.recovery, "resolves"),
    )


def _describe_effect(message: ReadMessage | None, effect: str) -> str:
    if message is None:
        return "not sent"
    return effect if getattr(message, effect) else message.sentence


def _format_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    cells = (head, ["---"] * len(head), *rows)
    lines = (
        " | ".join(" ".join(re.sub(r"([|*])", r"\\\1", each).split()) for each in row)
        for row in cells
    )
    return "\n" + "".join(f"| {line} |\n" for line in lines)


def main() -> None:
    """Print the document."""
    sys.stdout.write(document())


if __name__ == "__main__":
    main()
