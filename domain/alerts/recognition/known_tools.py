"""Recognizes the tool that sent a message, and proposes the settings of an integration for it."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple

from domain.alerts.formats.base import AlertFormat
from domain.alerts.formats.registry import FORMATS
from domain.alerts.recognition.messages import Messages
from domain.alerts.recognition.proposal import GuessedMapping, guess_mapping
from domain.alerts.tools.base import MonitoringTool, ToolKind
from domain.core.errors import NotFoundError


class KnownTool(NamedTuple):
    """A known tool and the format of its messages."""

    format: AlertFormat
    tool: MonitoringTool


@cache
def _load_known_tools() -> Mapping[str, KnownTool]:
    """Return the known tools, keyed by slug.

    Tools with their own format come before tools that need a mapping.
    """
    return {
        tool.slug: KnownTool(each, tool)
        for each in sorted(FORMATS, key=attrgetter("has_mapping"))
        for tool in each.list_tools()
    }


def get_known_tool(slug: str) -> KnownTool:
    """Return the known tool with the given slug.

    Raise NotFoundError if there is no such tool.
    """
    if slug not in _load_known_tools():
        raise NotFoundError("Tool not found.")
    return _load_known_tools()[slug]


def find_known_tool(message: Mapping[str, object]) -> KnownTool | None:
    """Return the known tool that sent a message, or None."""
    tools = _load_known_tools().values()
    return next((each for each in tools if each.tool.recognizes(message)), None)


def search_tools(text: str) -> list[tuple[ToolKind, list[MonitoringTool]]]:
    """Return the known tools that match all words of a search text, grouped by kind."""
    words, kinds = text.casefold().split(), list(ToolKind)
    found = [
        each.tool
        for each in _load_known_tools().values()
        if all(word in f"{each.tool.name} {each.tool.kind.label}".casefold() for word in words)
    ]
    found.sort(key=lambda tool: (kinds.index(tool.kind), tool.name.casefold()))
    return [(kind, list(tools)) for kind, tools in groupby(found, attrgetter("kind"))]


@dataclass(frozen=True, kw_only=True)
class Proposal(GuessedMapping):
    """The integration settings that are proposed for the messages of an alert."""

    #: Name of the tool that probably sent the messages, or None if it is unknown.
    tool: str | None = None
    format: AlertFormat = FORMATS[0]
    #: Instruction for configuring the tool.
    hint: str = ""


def propose_mapping(messages: Messages) -> Proposal:
    """Propose a format and a mapping for the messages of an alert."""
    if known := find_known_tool(messages.firing):
        body_format, tool = known
        return Proposal(tool=tool.name, format=body_format, mapping=tool.mapping, hint=tool.hint)
    return Proposal(**vars(guess_mapping(messages)))
