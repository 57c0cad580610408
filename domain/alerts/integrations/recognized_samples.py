"""Recognizes pasted messages about an alert, and previews their processing."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256

from domain.alerts.formats.base import ParserSettings
from domain.alerts.integrations.mapping_preview import MessageParser
from domain.alerts.integrations.mapping_questions import answer_questions
from domain.alerts.integrations.mapping_types import MappingQuestion, SamplePreview
from domain.alerts.integrations.samples import MessageTexts, Sample, parse_messages
from domain.alerts.reading.text import format_canonical_json
from domain.alerts.recognition.tools import Proposal


@dataclass(frozen=True, kw_only=True)
class Recognition:
    """A proposal for pasted messages, and how the service would process them."""

    proposal: Proposal
    questions: tuple[MappingQuestion, ...]
    sample: Sample
    preview: SamplePreview
    #: Hash of the messages.
    digest: str

    @property
    def is_sure(self) -> bool:
        """True if there are no questions, and the messages have the effects that users expect."""
        repeat, recovery = self.preview.repeat, self.preview.recovery
        is_joined = repeat is None or (repeat.joins and not repeat.resolves)
        is_resolved = recovery.resolves if recovery else self.preview.never_resolves is None
        return not self.questions and is_joined and is_resolved


def recognize_messages(
    texts: MessageTexts,
    answers: Mapping[str, str] | None = None,
    *,
    now: datetime,
    reading: ParserSettings,
) -> Recognition:
    """Recognize the messages about an alert. Only the first object in an array is used.

    `answers` are the values of chosen answers to the questions about the messages, by the names of
    the questions. Raise InvalidError, which names the message.
    """
    sample, messages = parse_messages(texts, nesting_limit=reading.nesting_limit)
    proposal, questions = answer_questions(messages, answers or {})
    parser = MessageParser(
        format=proposal.format, mapping=proposal.mapping, now=now, reading=reading
    )
    return Recognition(
        proposal=proposal,
        questions=questions,
        sample=sample,
        preview=parser.preview(messages),
        digest=sha256(format_canonical_json([*vars(texts).values()])).hexdigest(),
    )
