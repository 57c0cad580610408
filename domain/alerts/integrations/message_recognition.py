"""Recognizes pasted messages about an alert, and previews their processing."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256

from domain.alerts.formats.base import ParserSettings
from domain.alerts.integrations.mapping_preview import MessageParser
from domain.alerts.integrations.mapping_questions import apply_answers
from domain.alerts.integrations.mapping_types import MappingQuestion, SamplePreview
from domain.alerts.integrations.samples import (
    MessageTexts,
    format_messages,
    parse_messages,
)
from domain.alerts.parsing.text_conversion import format_canonical_json
from domain.alerts.recognition.known_tools import Proposal
from domain.alerts.recognition.messages import Messages


@dataclass(frozen=True, kw_only=True)
class Recognition:
    """A mapping proposal for pasted messages, with questions and a preview of the alerts."""

    proposal: Proposal
    questions: tuple[MappingQuestion, ...]
    messages: Messages
    #: Messages to save with the mapping.
    texts: MessageTexts
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

    `answers` maps the name of each question about the messages to the value of the chosen answer.
    Raise InvalidError, which names the message, if a message is not valid.
    """
    sample, messages = parse_messages(texts, nesting_limit=reading.nesting_limit)
    proposal, questions = apply_answers(messages, answers or {})
    parser = MessageParser(
        format=proposal.format, mapping=proposal.mapping, now=now, reading=reading
    )
    return Recognition(
        proposal=proposal,
        questions=questions,
        messages=messages,
        texts=format_messages(sample, messages),
        preview=parser.preview(messages),
        digest=sha256(format_canonical_json([*vars(texts).values()])).hexdigest(),
    )
