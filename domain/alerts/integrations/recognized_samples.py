"""Recognizes pasted messages of an alert, and previews how they would be processed together."""

from dataclasses import dataclass
from datetime import datetime

from domain.alerts.formats.base import ParserSettings
from domain.alerts.integrations.mapping_preview import MessageParser
from domain.alerts.integrations.mapping_types import SamplePreview
from domain.alerts.integrations.samples import MessageTexts, Sample, parse_messages
from domain.alerts.recognition.tools import Proposal, propose_mapping


@dataclass(frozen=True, kw_only=True)
class Recognition:
    """A proposal for pasted messages, and how the service would process them."""

    proposal: Proposal
    sample: Sample
    preview: SamplePreview


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
