"""Recognizes the tool that sent a payload, and shows the alert that it would open."""

from dataclasses import dataclass
from datetime import datetime

from domain.alerts.formats.base import Reading
from domain.alerts.integrations.mapping_preview import SamplePreview
from domain.alerts.integrations.proposals import Proposal, propose
from domain.alerts.integrations.resolving import never_resolves, resolves_seldom
from domain.alerts.integrations.samples import FIELD_LABELS, Sample, read_sample
from domain.alerts.integrations.trials import explain
from domain.alerts.reading.body import read_json
from domain.alerts.reading.incoming import (
    InvalidEvent,
    MissingAttributes,
    NoValidItem,
    UnreadableBody,
)
from domain.alerts.reading.mapping import FieldMapping
from domain.alerts.reading.parse_warnings import parse_warnings_of
from domain.alerts.reading.text import pretty_json
from domain.errors import InvalidError


@dataclass(frozen=True, kw_only=True)
class Recognition:
    """What is proposed for a pasted payload, and how it would be read then."""

    proposal: Proposal
    sample: Sample
    preview: SamplePreview

    @property
    def sources(self) -> tuple[tuple[str, str], ...]:
        """The label of each mapped field and where it is read."""
        return sources_of(self.proposal.mapping)


def sources_of(mapping: FieldMapping) -> tuple[tuple[str, str], ...]:
    """Return the label of each field that a mapping reads elsewhere, and the source."""
    mapped = {*mapping.paths, *mapping.rules.joins}
    return tuple(
        (label, mapping.sources[field]) for field, label in FIELD_LABELS.items() if field in mapped
    )


def recognize(text: str, *, now: datetime, reading: Reading) -> Recognition:
    """Recognize a payload; of an array the first object. Raise InvalidError naming the sample."""
    sample = read_sample(_one_alert(text, reading), nesting_limit=reading.nesting_limit)
    proposal = propose(sample.payload)
    return Recognition(
        proposal=proposal, sample=sample, preview=_preview(proposal, sample, now, reading)
    )


def _one_alert(text: str, reading: Reading) -> str:
    """Return the text of the first object of an array, or the text itself."""
    try:
        value = read_json(
            text.encode("utf-8", "surrogatepass"), nesting_limit=reading.nesting_limit
        )
    except UnreadableBody:
        return text  # read_sample says why
    first = value[0] if isinstance(value, list) and value else None
    return pretty_json(first) if isinstance(first, dict) else text


def _preview(proposal: Proposal, sample: Sample, now: datetime, reading: Reading) -> SamplePreview:
    mapping, payload = proposal.mapping, sample.payload
    try:
        parsed = proposal.format.parse(payload, now=now, reading=reading, mapping=mapping)
    except (InvalidEvent, MissingAttributes, NoValidItem) as error:
        raise InvalidError(str(error), field="sample") from error
    alert = next(iter(parsed.alerts), None)
    is_mapped = proposal.format.has_mapping and parsed.event is None
    flag = reading.automatic_fingerprint
    return SamplePreview(
        alert=explain(alert) if alert else None,
        parse_warnings=tuple(parse_warnings_of(parsed)),
        never_resolves=never_resolves(mapping, payload, automatic_fingerprint=flag)
        if is_mapped
        else None,
        resolves_seldom=resolves_seldom(mapping, payload) if is_mapped else None,
    )
