"""Rules of a mapping: severity words, conditions to resolve or drop an alert, and joins.

A condition checks one value of the payload. Except for IS_MISSING, a missing value matches no
condition, so that other kinds of payloads are not resolved or dropped by mistake.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from domain.alerts.reading.incoming import Severity
from domain.alerts.reading.paths import Path, checked_path, resolve, shown
from domain.alerts.reading.text import as_text, excerpt, is_blank
from domain.core.errors import InvalidError

#: Maximum number of severity words of an integration.
MOST_WORDS = 100
#: Maximum length of a severity word or a rule's word, in characters.
LONGEST_WORD = 60
#: Maximum length of a label name, in characters.
LONGEST_LABEL = 100
#: Maximum number of rules of a kind, of words in a rule, and of values joined to a field.
MOST_CONDITIONS = 8
_MOST_CONDITION_WORDS = 20
MOST_JOINED = 6
#: Maximum length of a separator, in characters.
LONGEST_SEPARATOR = 10


class Operator(StrEnum):
    """Comparison of a value with the words of a rule. Case and surrounding spaces are ignored."""

    IS = "is"
    IS_NOT = "is_not"
    CONTAINS = "contains"
    #: The word `yes` matches missing values, and `no` matches existing values.
    IS_MISSING = "is_missing"

    @property
    def words(self) -> str:
        """Name of the operator for a sentence."""
        return self.value.replace("_", " ")


@dataclass(frozen=True, slots=True)
class Condition:
    """A rule that compares the value at a path with words. One matching word is enough."""

    path: Path
    operator: Operator
    words: tuple[str, ...]

    def matches(self, payload: object) -> bool:
        """Return whether the rule matches a payload."""
        value = resolve(payload, self.path)
        if self.operator is Operator.IS_MISSING:
            return ("yes" if is_blank(value) else "no") in map(str.casefold, self.words)
        if is_blank(value):
            return False
        found = [as_word(each) for each in (value if isinstance(value, list) else [value])]
        wanted = [word.casefold() for word in self.words]
        match self.operator:
            case Operator.IS:
                return any(each in wanted for each in found)
            case Operator.IS_NOT:
                return all(each not in wanted for each in found)
            case _:
                return any(word in each for each in found for word in wanted)

    @property
    def sentence(self) -> str:
        """The rule as a phrase."""
        return f"{shown(self.path)} {self.operator.words} {' or '.join(map(excerpt, self.words))}"


@dataclass(frozen=True, slots=True)
class Join:
    """Values that are appended to a mapped field."""

    paths: tuple[Path, ...]
    separator: str = ": "


@dataclass(frozen=True, kw_only=True, slots=True)
class MappingRules:
    """The rules of a mapping."""

    #: Severity for each word that senders use. Words are normalized by `as_word`.
    severity_words: Mapping[str, Severity] = field(default_factory=dict)
    #: Rules of which one resolves the alert. Without rules, the end time resolves it.
    resolved_when: tuple[Condition, ...] = ()
    #: Rules of which one drops the item, so that it does not become an alert.
    dropped_when: tuple[Condition, ...] = ()
    #: Joins by the name of the field.
    joins: Mapping[str, Join] = field(default_factory=dict)
    #: Labels for the environment and the service. The first label that an alert has is used.
    environment_labels: tuple[str, ...] = ()
    service_labels: tuple[str, ...] = ()

    def is_over(self, payload: object) -> bool:
        """Return whether a rule resolves the alert of a payload."""
        return any(rule.matches(payload) for rule in self.resolved_when)

    def is_dropped(self, payload: object) -> bool:
        """Return whether a rule drops a payload."""
        return any(rule.matches(payload) for rule in self.dropped_when)

    @property
    def paths(self) -> tuple[Path, ...]:
        """All paths that the rules read."""
        return (
            *(rule.path for rule in (*self.resolved_when, *self.dropped_when)),
            *(path for join in self.joins.values() for path in join.paths),
        )


NO_RULES = MappingRules()


def as_word(value: object) -> str:
    """Normalize a value for comparison with words."""
    return as_text(value).strip().casefold()


def checked_words(words: Mapping[str, object], *, field: str) -> dict[str, Severity]:
    """Validate and normalize severity words.

    Raise InvalidError if a word or a severity is not valid.
    """
    checked: dict[str, Severity] = {}
    for given, severity in words.items():
        word = as_word(given)
        if not 0 < len(word) <= LONGEST_WORD or not word.isprintable():
            message = f"A severity word must have 1 to {LONGEST_WORD} printable characters."
            raise InvalidError(message, field=field)
        if severity not in set(Severity):
            message = f"{excerpt(severity)} is not a severity. Use {', '.join(Severity)}."
            raise InvalidError(message, field=field)
        checked[word] = Severity(str(severity))
    if len(checked) > MOST_WORDS:
        message = f"An integration can have at most {MOST_WORDS} severity words."
        raise InvalidError(message, field=field)
    return checked


def checked_labels(names: object, *, field: str) -> tuple[str, ...]:
    """Validate the names of labels.

    Raise InvalidError if a name is not valid.
    """
    given = list(names) if isinstance(names, list | tuple) else [None]
    found = tuple(dict.fromkeys(each for each in given if isinstance(each, str)))
    is_each = all(0 < len(each) <= LONGEST_LABEL and each.isprintable() for each in found)
    if not is_each or not all(isinstance(each, str) for each in given):
        message = f"The name of a label must have 1 to {LONGEST_LABEL} printable characters."
        raise InvalidError(message, field=field)
    if len(found) > MOST_CONDITIONS:
        raise InvalidError(f"Choose at most {MOST_CONDITIONS} labels.", field=field)
    return found


def checked_condition(path: Path, operator: object, words: object, *, field: str) -> Condition:
    """Validate a rule.

    Raise InvalidError if the operator or a word is not valid.
    """
    if operator not in set(Operator):
        message = f"The operator of a rule must be one of {', '.join(Operator)}."
        raise InvalidError(message, field=field)
    given = list(words) if isinstance(words, list | tuple) else []
    clean = tuple(dict.fromkeys(each.strip() for each in given if isinstance(each, str)))
    if not 0 < len(clean) <= _MOST_CONDITION_WORDS or not all(clean):
        message = f"A rule must have 1 to {_MOST_CONDITION_WORDS} words to compare with."
        raise InvalidError(message, field=field)
    # Commas separate the words in forms.
    if any(len(word) > LONGEST_WORD or not word.isprintable() or "," in word for word in clean):
        message = (
            f"A word of a rule can have at most {LONGEST_WORD} printable characters, and no comma."
        )
        raise InvalidError(message, field=field)
    return Condition(path, Operator(str(operator)), clean)


def checked_join(paths: tuple[Path, ...], separator: object, *, field: str) -> Join:
    """Validate a join.

    Raise InvalidError if it is not valid.
    """
    if not 0 < len(paths) <= MOST_JOINED:
        raise InvalidError(f"A field can be joined with 1 to {MOST_JOINED} values.", field=field)
    is_text = isinstance(separator, str) and len(separator) <= LONGEST_SEPARATOR
    if not is_text or not str(separator).isprintable():
        message = f"A separator can have at most {LONGEST_SEPARATOR} printable characters."
        raise InvalidError(message, field=field)
    return Join(paths, str(separator))


def read_rules(stored: object) -> MappingRules:
    """Parse stored rules.

    Raise InvalidError if they are malformed.
    """
    if not isinstance(stored, dict) or stored.keys() - _READERS:
        raise InvalidError("The mapping rules are invalid.", field="rules")
    words = stored.get("severity_words", {})
    joins = stored.get("joins", {})
    if not (isinstance(words, dict) and isinstance(joins, dict)):
        raise InvalidError("The mapping rules are invalid.", field="rules")
    return MappingRules(
        severity_words=checked_words(words, field="severity_words"),
        resolved_when=_read_conditions(stored.get("resolved_when", []), "resolved_when"),
        dropped_when=_read_conditions(stored.get("dropped_when", []), "dropped_when"),
        joins={name: _read_join(given) for name, given in joins.items()},
        **{name: checked_labels(stored.get(name, []), field=name) for name in LABEL_FIELDS},
    )


#: Names of the rule fields that contain labels.
LABEL_FIELDS = ("environment_labels", "service_labels")
_READERS = {"severity_words", "resolved_when", "dropped_when", "joins", *LABEL_FIELDS}


def _read_conditions(stored: object, name: str) -> tuple[Condition, ...]:
    if not (isinstance(stored, list) and all(isinstance(each, dict) for each in stored)):
        raise InvalidError("The mapping rules are invalid.", field=name)
    return tuple(
        checked_condition(
            checked_path(each.get("path")), each.get("operator"), each.get("words"), field=name
        )
        for each in stored
    )


def _read_join(stored: object) -> Join:
    if not (isinstance(stored, dict) and isinstance(stored.get("paths"), list)):
        raise InvalidError("The join is invalid.", field="joins")
    paths = tuple(map(checked_path, stored["paths"]))
    return checked_join(paths, stored.get("separator", ": "), field="joins")


def rules_value(rules: MappingRules) -> dict[str, object]:
    """Return rules as a value for the JSON column, without empty fields."""
    written = {
        "severity_words": {word: each.value for word, each in rules.severity_words.items()},
        "resolved_when": list(map(_condition_value, rules.resolved_when)),
        "dropped_when": list(map(_condition_value, rules.dropped_when)),
        "joins": {
            name: {"paths": [list(path) for path in join.paths], "separator": join.separator}
            for name, join in rules.joins.items()
        },
        **{name: list(getattr(rules, name)) for name in LABEL_FIELDS},
    }
    return {name: value for name, value in written.items() if value}


def _condition_value(rule: Condition) -> dict[str, object]:
    return {
        "path": list(rule.path),
        "operator": rule.operator.value,
        "words": list(rule.words),
    }
