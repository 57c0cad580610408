"""Recognizes the tool that sent a message, and proposes the settings of an integration for it."""

from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter

from domain.alerts.formats.base import AlertFormat
from domain.alerts.formats.registry import FORMATS
from domain.alerts.reading.mapping import FieldMapping
from domain.alerts.recognition.messages import Messages
from domain.alerts.recognition.proposal import Finding, guess_mapping
from domain.alerts.tools.base import MonitoringTool

#: Known tools. Tools with their own format come before tools that need a mapping.
_KNOWN_TOOLS: Sequence[tuple[AlertFormat, MonitoringTool]] = tuple(
    (each, tool) for each in sorted(FORMATS, key=attrgetter("has_mapping")) for tool in each.tools
)


@dataclass(frozen=True, kw_only=True)
class Proposal:
    """The integration settings that are proposed for the messages of an alert."""

    #: Name of the tool that probably sent the messages, or None if it is unknown.
    tool: str | None
    format: AlertFormat
    mapping: FieldMapping
    #: Instruction for configuring the tool.
    hint: str = ""
    #: Parts of a guessed mapping with the reasons for them. They are empty for a known tool.
    findings: tuple[Finding, ...] = ()
    #: Questions about facts that are missing in the messages, as sentences.
    questions: tuple[str, ...] = ()


def propose_mapping(messages: Messages) -> Proposal:
    """Propose a format and a mapping for the messages of an alert."""
    for body_format, tool in _KNOWN_TOOLS:
        if tool.recognizes(messages.firing):
            return Proposal(
                tool=tool.name, format=body_format, mapping=tool.mapping, hint=tool.hint
            )
    guessed = guess_mapping(messages)
    return Proposal(
        tool=None,
        format=FORMATS[0],
        mapping=guessed.mapping,
        findings=guessed.findings,
        questions=guessed.questions,
    )
