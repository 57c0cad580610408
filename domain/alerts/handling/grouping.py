"""Explains why reports were grouped into one alert: from which fields its fingerprint was made.

The stored fingerprint is compared with the one that each rule makes of the payload, so the
explanation stays true if the mapping or a setting has changed since.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from domain.alerts.formats.base import Format
from domain.alerts.reading.incoming import IncomingAlert
from domain.alerts.reading.mapping import FieldMapping
from domain.alerts.reading.payload_fields import flatten

Fields = tuple[tuple[str, str], ...]


@dataclass(frozen=True, kw_only=True)
class Grouping:
    """The rule of the fingerprint as a sentence, and the fields that it used."""

    sentence: str
    fields: Fields = ()

    @property
    def short(self) -> str:
        """The sentence without its end, for the middle of another one."""
        text = self.sentence.removesuffix(".").removesuffix(" are grouped into one alert")
        return text[:1].lower() + text[1:]


NEVER = Grouping(sentence="This alert is not grouped: it has no fingerprint.")
FORGOTTEN = Grouping(
    sentence="The origin of the fingerprint is unknown: the payload that opened the "
    "alert is no longer stored, or the integration was changed since."
)


def explain(
    stored: bytes | None,
    part: Mapping[str, object],
    item: IncomingAlert | None,
    *,
    body_format: Format | None,
    mapping: FieldMapping,
) -> Grouping:
    """Return the rule that made the stored fingerprint; `part` is the item of the payload."""
    if stored is None:
        return NEVER
    if item is None or body_format is None:
        return FORGOTTEN
    for rule in body_format.grouping_rules(part, item, mapping):
        if rule.fingerprint == stored:
            return Grouping(sentence=rule.sentence, fields=flatten(rule.fields))
    return FORGOTTEN
