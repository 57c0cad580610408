"""Explains why reports were grouped into one alert: from which fields its fingerprint was made.

The stored fingerprint is compared with the one that each rule makes of the payload, so the
explanation stays true if the mapping or a setting has changed since.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from domain.alerts.integration_type import IntegrationType
from domain.alerts.reading import fingerprint, pagerduty
from domain.alerts.reading.incoming import IncomingAlert
from domain.alerts.reading.mapping import AlertField, FieldMapping
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

_Rule = tuple[bytes, str, object]


def explain(
    stored: bytes | None,
    part: Mapping[str, object],
    item: IncomingAlert | None,
    *,
    body_format: str,
    mapping: FieldMapping,
) -> Grouping:
    """Return the rule that made the stored fingerprint; `part` is the item of the payload."""
    if stored is None:
        return NEVER
    if item is None:
        return FORGOTTEN
    rules = (
        _metrics_rules(part, item)
        if body_format == IntegrationType.PROMETHEUS
        else _generic_rules(part, mapping)
    )
    for identity, sentence, fields in rules:
        if identity == stored:
            return Grouping(sentence=sentence, fields=flatten(fields))
    return FORGOTTEN


def _event_rules(part: Mapping[str, object]) -> Iterator[_Rule]:
    key = pagerduty.dedup_key_of(part)
    sentence = "Events with the same dedup_key are grouped into one alert."
    yield fingerprint.of_value(key), sentence, {"dedup_key": key}


def _generic_rules(part: Mapping[str, object], mapping: FieldMapping) -> Iterator[_Rule]:
    if pagerduty.is_event(part):
        yield from _event_rules(part)
    given, name = (
        mapping.fields(part).get(AlertField.FINGERPRINT),
        mapping.sources[AlertField.FINGERPRINT],
    )
    if fingerprint.is_fingerprint(given):
        sentence = f"Reports with the same {name} are grouped into one alert."
        yield fingerprint.of_value(given), sentence, {name: given}
    stable = mapping.stable_part(part)
    sentence = f"Reports that differ only in {mapping.volatile} are grouped into one alert."
    yield fingerprint.of_payload(stable), sentence, stable


def _metrics_rules(part: Mapping[str, object], item: IncomingAlert) -> Iterator[_Rule]:
    given, labels = part.get("fingerprint"), part.get("labels")
    labels = labels if isinstance(labels, dict) else {}
    if fingerprint.is_fingerprint(given):
        sentence = "Reports with the same fingerprint from the sender are grouped into one alert."
        yield fingerprint.of_value(given), sentence, {"fingerprint": given, "labels": labels}
    sentence = "Reports with the same labels are grouped into one alert."
    yield fingerprint.of_labels(labels), sentence, {"labels": labels}
    sentence = "Reports without labels are grouped by their title."
    yield fingerprint.of_title(item.title), sentence, {"title": item.title}
