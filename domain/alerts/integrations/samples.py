"""What a person maps: a sample of a sender's payload, and which of its values feed which field."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from domain.alerts.integrations.sample_tree import Branch, tree_of
from domain.alerts.reading.body import read_object
from domain.alerts.reading.incoming import UnreadableBody
from domain.alerts.reading.mapping import (
    UNMAPPED,
    FieldMapping,
    Path,
    SampleValue,
    Target,
    kept_mapping,
    read_path,
    stored_form,
    values_of,
    written,
)
from domain.alerts.reading.text import canonical_json
from domain.errors import InvalidError
from models import Integration

#: Bytes of UTF-8. A sample shows one alert; a receiver takes much more.
LARGEST_SAMPLE = 64 * 1024

#: What each field of an alert is for, in the words of the page.
TARGET_LABELS: Mapping[Target, str] = {
    Target.TITLE: "Title",
    Target.DESCRIPTION: "Description",
    Target.START_TIME: "Start time",
    Target.END_TIME: "End time: resolves the alert",
    Target.SERVICE: "Service",
    Target.MONITORING_TOOL: "Monitoring tool",
    Target.HOSTS: "Hosts",
    Target.SEVERITY: "Severity",
    Target.FINGERPRINT: "Fingerprint: groups reports",
    Target.ENVIRONMENT: "Environment",
    Target.RUNBOOK: "Runbook",
}


@dataclass(frozen=True, kw_only=True)
class Sample:
    """A payload that a sender showed us."""

    text: str
    payload: Mapping[str, Any]
    values: tuple[SampleValue, ...]

    @property
    def tree(self) -> tuple[Branch, ...]:
        """Its fields as they lie within each other."""
        return tree_of(self.payload)

    @property
    def digest(self) -> str:
        """The same for samples that say the same, however they are laid out."""
        return sha256(canonical_json(self.payload)).hexdigest()


@dataclass(frozen=True, kw_only=True)
class TargetChoice:
    """A row of the mapping table: a field and what feeds it."""

    target: Target
    #: Paths as forms carry them, empty where nothing is chosen.
    first: str
    fallback: str

    @property
    def label(self) -> str:
        """The field in words."""
        return TARGET_LABELS[self.target]


def read_sample(text: str, *, nesting_limit: int) -> Sample:
    """Read a sample; raise InvalidError with a sentence if it is none."""
    body = text.encode("utf-8", "surrogatepass")
    if len(body) > LARGEST_SAMPLE:
        message = f"A sample has at most {LARGEST_SAMPLE // 1024} KiB: leave out what repeats."
        raise InvalidError(message, field="sample")
    try:
        payload = read_object(body, nesting_limit=nesting_limit)
    except UnreadableBody as error:
        raise InvalidError(str(error).replace("body", "sample"), field="sample") from error
    return Sample(text=text, payload=payload, values=values_of(payload))


def choices_of(mapping: FieldMapping) -> tuple[TargetChoice, ...]:
    """Return the rows of the mapping table, filled in with a mapping."""
    rows = []
    for target in Target:
        first, fallback, *_ = (*map(written, mapping.paths.get(target, ())), "", "")
        rows.append(TargetChoice(target=target, first=first, fallback=fallback))
    return tuple(rows)


def read_choices(chosen: Mapping[Target, Sequence[str]], sample: Sample) -> FieldMapping:
    """Return the mapping that somebody chose from a sample; raise InvalidError naming the field.

    Each field has the path that it is fed from, and the one to fall back to; blank is none.
    """
    offered = {value.written for value in sample.values}
    paths: dict[Target, tuple[Path, ...]] = {}
    for target, texts in chosen.items():
        named = [text for text in dict.fromkeys(texts) if text]
        if not offered.issuperset(named):
            message = f"{TARGET_LABELS[target]}: choose a field of the sample."
            raise InvalidError(message, field="mapping")
        if named:
            paths[target] = tuple(map(read_path, named))
    return FieldMapping(paths)


def save_mapping(integration: Integration, sample: Sample, mapping: FieldMapping) -> None:
    """Let the integration read its deliveries by this mapping from now on."""
    integration.sample = sample.text
    integration.mapping = stored_form(mapping) or None


def remove_mapping(integration: Integration) -> None:
    """Forget sample and mapping: fields are fed by the keys of their own names."""
    integration.sample = None
    integration.mapping = None


def mapping_of(integration: Integration) -> FieldMapping:
    """Return by what the integration reads its deliveries."""
    return kept_mapping(integration.mapping)


@dataclass(frozen=True, kw_only=True)
class MappingDraft:
    """A mapping in the making: a sample, and what was chosen from it."""

    sample: Sample
    mapping: FieldMapping
    #: The sample is another one than was mapped, so nothing is chosen yet.
    is_new_sample: bool = False

    @property
    def choices(self) -> tuple[TargetChoice, ...]:
        """The rows of the mapping table."""
        return choices_of(self.mapping)


def saved_draft(integration: Integration, *, nesting_limit: int) -> MappingDraft | None:
    """Return what is saved, if anything is; raise InvalidError if it can be read no more."""
    if not integration.sample:
        return None
    sample = read_sample(integration.sample, nesting_limit=nesting_limit)
    return MappingDraft(sample=sample, mapping=mapping_of(integration))


def read_draft(
    text: str, chosen: Mapping[Target, Sequence[str]], *, mapped_for: str, nesting_limit: int
) -> MappingDraft:
    """Return what somebody has on the page; raise InvalidError naming the field.

    `mapped_for` is the digest of the sample that the choices were made from. If the sample is
    another one now, they do not count: what they meant may be gone or mean something else.
    """
    sample = read_sample(text, nesting_limit=nesting_limit)
    if sample.digest != mapped_for:
        return MappingDraft(sample=sample, mapping=UNMAPPED, is_new_sample=True)
    return MappingDraft(sample=sample, mapping=read_choices(chosen, sample))
