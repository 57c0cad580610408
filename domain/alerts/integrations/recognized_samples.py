"""Recognizes pasted messages of an alert, and previews how they would be processed together."""

from dataclasses import dataclass
from datetime import datetime

from domain.alerts.formats.base import ParserSettings
from domain.alerts.integrations.mapping_preview import MessageParser
from domain.alerts.integrations.mapping_types import SamplePreview
from domain.alerts.integrations.samples import MessageTexts, Sample, parse_messages
from domain.alerts.reading.mapping import AlertField, FieldMapping
from domain.alerts.recognition.tools import Proposal, propose_mapping


@dataclass(frozen=True, kw_only=True)
class Recognition:
    """A proposal for pasted messages, and how the service would process them."""

    proposal: Proposal
    sample: Sample
    preview: SamplePreview

    @property
    def sources(self) -> tuple[tuple[str, str], ...]:
        """Label and source of each mapped field."""
        return list_field_sources(self.proposal.mapping)


def list_field_sources(mapping: FieldMapping) -> tuple[tuple[str, str], ...]:
    """Return the label and the source of each field that a mapping reads from another key."""
    mapped = {*mapping.paths, *mapping.rules.joins}
    return tuple((field.label, mapping.sources[field]) for field in AlertField if field in mapped)


def recognize_messages(
    texts: MessageTexts, *, now: datetime, reading: ParserSettings
) -> Recognition:
    """Recognize the messages of an alert. Of an array, the first object is used.

    Raise InvalidError, which names the message.
    """
    sample, messages = parse_messages(texts, nesting_limit=reading.nesting_limit)
    proposal = propose_mapping(messages)
    parser = MessageParser(
        format=proposal.format, mapping=proposal.mapping, now=now, reading=reading
    )
    return Recognition(proposal=proposal, sample=sample, preview=parser.preview(messages))
