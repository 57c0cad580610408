"""Recognizes pasted messages of an alert, and previews how they would be processed together."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from domain.alerts.formats.base import ParserSettings
from domain.alerts.integrations.mapping_preview import (
    SamplePreview,
    explain_missing_resolution,
    explain_rare_resolution,
)
from domain.alerts.integrations.mapping_types import ReadMessage
from domain.alerts.integrations.samples import Sample, parse_sample
from domain.alerts.integrations.trial_alerts import explain_parsed_alert
from domain.alerts.reading.body import parse_json
from domain.alerts.reading.incoming import (
    IncomingAlert,
    InvalidEventError,
    MissingAttributesError,
    NoValidItemError,
    ParsedBody,
    UnreadableBodyError,
)
from domain.alerts.reading.mapping import AlertField, FieldMapping
from domain.alerts.reading.parse_warnings import collect_parse_warnings
from domain.alerts.reading.text import format_indented_json
from domain.alerts.recognition.messages import Messages
from domain.alerts.recognition.tools import Proposal, propose_mapping
from domain.core.errors import InvalidError


@dataclass(frozen=True, kw_only=True)
class MessageTexts:
    """Messages of one alert as JSON texts. The repeat and the recovery may be empty."""

    sample: str
    repeat: str = ""
    recovery: str = ""


@dataclass(frozen=True, kw_only=True)
class Recognition:
    """A proposal for pasted messages, and how the service would process them."""

    proposal: Proposal
    sample: Sample
    preview: SamplePreview
    #: How the repeat and the recovery would be processed, or None if they were not given.
    repeat: ReadMessage | None = None
    recovery: ReadMessage | None = None

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
    sample = _parse_message(texts.sample, "sample", reading)
    others = {
        name: _parse_message(text, name, reading).payload
        for name, text in (("repeat", texts.repeat), ("recovery", texts.recovery))
        if text.strip()
    }
    proposal = propose_mapping(Messages(firing=sample.payload, **others))
    parsed = _parse(proposal, sample.payload, "sample", now, reading)
    alert = next(iter(parsed.alerts), None)
    read = {
        name: _read_message(name, proposal, payload, alert, now, reading)
        for name, payload in others.items()
    }
    return Recognition(
        proposal=proposal,
        sample=sample,
        preview=_preview_sample(proposal, sample, parsed, reading),
        **read,
    )


def _parse_message(text: str, name: str, reading: ParserSettings) -> Sample:
    try:
        return parse_sample(
            _select_first_object(text, reading), nesting_limit=reading.nesting_limit
        )
    except InvalidError as error:
        raise InvalidError(str(error).replace("sample", name), field=name) from error


def _select_first_object(text: str, reading: ParserSettings) -> str:
    """Return the text of the first object of an array, or the text itself."""
    try:
        value = parse_json(
            text.encode("utf-8", "surrogatepass"), nesting_limit=reading.nesting_limit
        )
    except UnreadableBodyError:
        return text  # parse_sample reports the error.
    first = value[0] if isinstance(value, list) and value else None
    return format_indented_json(first) if isinstance(first, dict) else text


def _parse(
    proposal: Proposal,
    payload: Mapping[str, object],
    name: str,
    now: datetime,
    reading: ParserSettings,
) -> ParsedBody:
    try:
        body = proposal.format.build_body_of_sample(payload)
        return proposal.format.parse(body, now=now, reading=reading, mapping=proposal.mapping)
    except (InvalidEventError, MissingAttributesError, NoValidItemError) as error:
        raise InvalidError(str(error), field=name) from error


def _preview_sample(
    proposal: Proposal, sample: Sample, parsed: ParsedBody, reading: ParserSettings
) -> SamplePreview:
    mapping, payload = proposal.mapping, sample.payload
    alert = next(iter(parsed.alerts), None)
    is_mapped = proposal.format.has_mapping and parsed.event is None
    flag = reading.automatic_fingerprint
    return SamplePreview(
        alert=explain_parsed_alert(alert) if alert else None,
        parse_warnings=tuple(collect_parse_warnings(parsed)),
        never_resolves=explain_missing_resolution(mapping, payload, automatic_fingerprint=flag)
        if is_mapped
        else None,
        resolves_seldom=explain_rare_resolution(mapping, payload) if is_mapped else None,
    )


def _read_message(
    name: str,
    proposal: Proposal,
    payload: Mapping[str, object],
    first: IncomingAlert | None,
    now: datetime,
    reading: ParserSettings,
) -> ReadMessage:
    """Return how a repeat or a recovery would be processed after the first message."""
    parsed = _parse(proposal, payload, name, now, reading)
    alert = next(iter(parsed.alerts), None)
    joins = bool(alert and first and alert.fingerprint == first.fingerprint)
    resolves = joins and alert is not None and alert.ended_at is not None
    return ReadMessage.model_validate(
        {
            "alert": explain_parsed_alert(alert) if alert else None,
            "joins": joins,
            "resolves": resolves,
            "sentence": _describe_message(name, alert, joins=joins),
        }
    )


def _describe_message(name: str, alert: IncomingAlert | None, *, joins: bool) -> str:
    if alert is None:
        return f"The {name} is dropped, so it does not change the alert."
    is_over = alert.ended_at is not None
    if not joins:
        other = "resolves another alert" if is_over else "opens another alert"
        return f"The {name} {other}, because its value of {alert.fingerprint_source} is different."
    if name == "recovery":
        return (
            "The recovery resolves the alert."
            if is_over
            else "The recovery does not resolve the alert: no rule and no end time applies to it."
        )
    return (
        "The repeat resolves the alert, although the problem is not over."
        if is_over
        else "The repeat joins the alert."
    )
