"""The rules of a mapping as a form carries them: paths to choose from, and words to write."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from domain.alerts.reading.mapping import AlertField
from domain.alerts.reading.mapping_rules import (
    MOST_CONDITIONS,
    Condition,
    Join,
    MappingRules,
    Operator,
    checked_condition,
    checked_join,
)
from domain.alerts.reading.paths import Path, read_path, written
from domain.errors import InvalidError

#: The fields that other values can be put behind.
JOINED_FIELDS = (AlertField.TITLE, AlertField.FINGERPRINT)
#: The number of values that the page offers for it.
_OFFERED_JOINS = 2


@dataclass(frozen=True, kw_only=True)
class ConditionChoice:
    """A row of a table of rules, which is no rule while no field is chosen."""

    #: A path as forms carry it.
    path: str = ""
    operator: str = Operator.IS.value
    #: Separated by commas.
    words: str = ""


@dataclass(frozen=True, kw_only=True)
class RuleChoices:
    """Everything that a form says about rules."""

    joins: Mapping[AlertField, Sequence[str]] = field(default_factory=dict)
    #: Between the parts of a title.
    separator: str = ": "
    resolved_when: Sequence[ConditionChoice] = ()
    dropped_when: Sequence[ConditionChoice] = ()


NO_CHOICES = RuleChoices()


def choices_of_rules(rules: MappingRules) -> RuleChoices:
    """Return what the form shows for rules, with an empty row for another one of each kind."""
    title = rules.joins.get(AlertField.TITLE)
    return RuleChoices(
        joins={name: _offered(rules.joins.get(name)) for name in JOINED_FIELDS},
        separator=title.separator if title else NO_CHOICES.separator,
        resolved_when=_rows(rules.resolved_when),
        dropped_when=_rows(rules.dropped_when),
    )


def _offered(join: Join | None) -> Sequence[str]:
    chosen = [written(path) for path in join.paths] if join else []
    return chosen + [""] * max(_OFFERED_JOINS - len(chosen), 1 if not chosen else 0)


def _rows(conditions: Sequence[Condition]) -> Sequence[ConditionChoice]:
    rows = [
        ConditionChoice(
            path=written(each.path), operator=each.operator.value, words=", ".join(each.words)
        )
        for each in conditions
    ]
    return [*rows, ConditionChoice()] if len(rows) < MOST_CONDITIONS else rows


def read_rule_choices(chosen: RuleChoices, *, offered: frozenset[str]) -> MappingRules:
    """Return the chosen rules; raise InvalidError for one whose path is not offered."""
    joins = {
        name.value: checked_join(paths, chosen.separator, field="mapping")
        for name, texts in chosen.joins.items()
        if (paths := tuple(_paths(texts, offered)))
    }
    return MappingRules(
        resolved_when=tuple(_conditions(chosen.resolved_when, offered)),
        dropped_when=tuple(_conditions(chosen.dropped_when, offered)),
        joins=joins,
    )


def _paths(texts: Sequence[str], offered: frozenset[str]) -> Iterator[Path]:
    for text in dict.fromkeys(texts):
        if text:
            yield _path(text, offered)


def _path(text: str, offered: frozenset[str]) -> Path:
    if text not in offered:
        message = "Choose a field of the sample for each rule."
        raise InvalidError(message, field="mapping")
    return read_path(text)


def _conditions(rows: Sequence[ConditionChoice], offered: frozenset[str]) -> Iterator[Condition]:
    if len(rows) > MOST_CONDITIONS:
        message = f"At most {MOST_CONDITIONS} rules of a kind are possible."
        raise InvalidError(message, field="mapping")
    for row in rows:
        words = [word for part in row.words.split(",") if (word := part.strip())]
        if not row.path and words:
            message = f"Choose the field that is compared with “{row.words.strip()}”."
            raise InvalidError(message, field="mapping")
        if row.path:
            path = _path(row.path, offered)
            yield checked_condition(path, row.operator, words, field="mapping")
