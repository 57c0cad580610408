"""Rules of a mapping: severity words, conditions to resolve or drop an alert, and joins.

A condition checks one value of the payload. Except with IS_MISSING, a missing value matches no
condition, so that payloads of other kinds do not resolve or drop alerts by mistake.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from domain.alerts.parsing.incoming_alert import Severity
from domain.alerts.parsing.payload_paths import (
    PayloadPath,
    find_value,
    format_path,
    remove_value,
    set_value,
    validate_path,
)
from domain.alerts.parsing.text_conversion import convert_to_text, format_excerpt, is_blank
from domain.alerts.parsing.whole_words import contains_unnegated_word
from domain.core.errors import InvalidError
from domain.core.word_joining import join_words

#: Maximum number of severity words that an integration can have.
MAX_SEVERITY_WORDS = 100
#: Maximum length of a severity word or a rule's word, in characters.
MAX_RULE_WORD_LENGTH = 60
#: Maximum length of a label name, in characters.
MAX_LABEL_NAME_LENGTH = 100
#: Limits on the rules of each kind, the words in a rule, and the values appended to a field.
MAX_RULES_PER_KIND = 8
_MAX_WORDS_PER_RULE = 20
MAX_JOINED_VALUES = 6
#: Maximum number of words that a fingerprint ignores.
MAX_IGNORED_WORDS = 60
#: Maximum length of a separator, in characters.
MAX_SEPARATOR_LENGTH = 10


class Operator(StrEnum):
    """An operator that compares a value with words. Case and surrounding spaces are ignored."""

    IS = "is"
    IS_NOT = "is_not"
    CONTAINS = "contains"
    #: Operator for whole words that are not negated: `success` does not match `not a success`.
    CONTAINS_WORD = "contains_word"
    #: Operator with which the word `yes` matches missing values, and `no` matches existing values.
    IS_MISSING = "is_missing"

    @property
    def phrase(self) -> str:
        """Name of the operator as words, such as `is not` for IS_NOT."""
        return "contains the word" if "word" in self.value else self.value.replace("_", " ")


@dataclass(frozen=True, slots=True)
class PayloadCondition:
    """A rule that compares the value at a path with words. One matching word is enough."""

    path: PayloadPath
    operator: Operator
    words: tuple[str, ...]

    def matches(self, payload: object) -> bool:
        """Return whether the rule matches a payload."""
        value = find_value(payload, self.path)
        if self.operator is Operator.IS_MISSING:
            return ("yes" if is_blank(value) else "no") in map(str.casefold, self.words)
        if is_blank(value):
            return False
        values = value if isinstance(value, list) else [value]
        if self.operator is Operator.CONTAINS_WORD:
            texts = map(convert_to_text, values)
            return any(contains_unnegated_word(text, word) for text in texts for word in self.words)
        return self._compare(list(map(normalize_word, values)))

    def _compare(self, found: Sequence[str]) -> bool:
        wanted = [word.casefold() for word in self.words]
        match self.operator:
            case Operator.IS:
                return any(each in wanted for each in found)
            case Operator.IS_NOT:
                return all(each not in wanted for each in found)
            case _:
                return any(word in each for each in found for word in wanted)

    def build_matching_payload(self, payload: Mapping[str, object]) -> Mapping[str, object]:
        """Return a copy of a payload, changed if possible so that the rule matches it."""
        if self.operator is Operator.IS_MISSING and self.matches({}):
            return {**remove_value(payload, self.path)}
        is_opposite = self.operator in {Operator.IS_NOT, Operator.IS_MISSING}
        return {**set_value(payload, self.path, "resolved" if is_opposite else self.words[0])}

    @property
    def phrase(self) -> str:
        """The rule as an English phrase, such as `state is “ok” or “resolved”`."""
        if self.operator is Operator.IS_MISSING:
            return f"{format_path(self.path)} {'is' if self.matches({}) else 'is not'} missing"
        return (
            f"{format_path(self.path)} {self.operator.phrase} "
            f"{join_words(map(format_excerpt, self.words), 'or')}"
        )


@dataclass(frozen=True, slots=True)
class ValueJoin:
    """Paths of the values to append to a mapped field, and the separator between the values."""

    paths: tuple[PayloadPath, ...]
    separator: str = ": "


@dataclass(frozen=True, kw_only=True, slots=True)
class MappingRules:
    """Rules of a mapping: severity words, conditions, appended values and label names."""

    #: Severity for each word that senders use. Words are normalized by `normalize_word`.
    severity_words: Mapping[str, Severity] = field(default_factory=dict)
    #: Rules that resolve the alert if any of them matches. Without rules, an end time resolves the
    #: alert.
    resolved_when: tuple[PayloadCondition, ...] = ()
    #: True if `resolved_when` is a guess that no user has confirmed.
    is_guess: bool = False
    #: Names of the questions that users answered by keeping the proposal.
    confirmed: tuple[str, ...] = ()
    #: Rules that drop the item if any of them matches, so that it does not become an alert.
    dropped_when: tuple[PayloadCondition, ...] = ()
    #: Values appended to each field, by field name.
    joins: Mapping[str, ValueJoin] = field(default_factory=dict)
    #: Words that texts in the fingerprint are compared without, in lower case. If there are any,
    #: other values that change are ignored too (`changing_words`).
    ignored_words: tuple[str, ...] = ()
    #: Labels for the environment and the service. The first label that is present in an alert is
    #: used.
    environment_labels: tuple[str, ...] = ()
    service_labels: tuple[str, ...] = ()

    def resolves_alert(self, payload: object) -> bool:
        """Return whether a rule resolves the alert in a payload."""
        return any(rule.matches(payload) for rule in self.resolved_when)

    def drops_payload(self, payload: object) -> bool:
        """Return whether a rule drops a payload."""
        return any(rule.matches(payload) for rule in self.dropped_when)

    @property
    def conditions(self) -> tuple[PayloadCondition, ...]:
        """The rules that resolve or drop an alert."""
        return (*self.resolved_when, *self.dropped_when)

    @property
    def paths(self) -> tuple[PayloadPath, ...]:
        """All paths that the rules read."""
        return (
            *(rule.path for rule in self.conditions),
            *(path for join in self.joins.values() for path in join.paths),
        )


NO_RULES = MappingRules()


def normalize_word(value: object) -> str:
    """Convert a value to case-folded text without surrounding spaces, to compare it with words."""
    return convert_to_text(value).strip().casefold()


def is_rule_word(word: str) -> bool:
    """Return whether a word can be used in a rule. Commas separate the words in forms."""
    return len(word) <= MAX_RULE_WORD_LENGTH and word.isprintable() and "," not in word


def validate_severity_words(words: Mapping[str, object], *, field: str) -> dict[str, Severity]:
    """Validate and normalize severity words.

    Raise InvalidError if a word or a severity is not valid.
    """
    checked: dict[str, Severity] = {}
    for given, severity in words.items():
        word = normalize_word(given)
        if not 0 < len(word) <= MAX_RULE_WORD_LENGTH or not word.isprintable():
            message = f"A severity word must have 1 to {MAX_RULE_WORD_LENGTH} printable characters."
            raise InvalidError(message, field=field)
        if severity not in set(Severity):
            message = f"{format_excerpt(severity)} is not a severity. Use {', '.join(Severity)}."
            raise InvalidError(message, field=field)
        checked[word] = Severity(str(severity))
    if len(checked) > MAX_SEVERITY_WORDS:
        message = f"An integration can have at most {MAX_SEVERITY_WORDS} severity words."
        raise InvalidError(message, field=field)
    return checked


def validate_label_names(names: object, *, field: str) -> tuple[str, ...]:
    """Validate the names of labels.

    Raise InvalidError if a name is not valid.
    """
    given = list(names) if isinstance(names, list | tuple) else [None]
    found = tuple(dict.fromkeys(each for each in given if isinstance(each, str)))
    is_each = all(0 < len(each) <= MAX_LABEL_NAME_LENGTH and each.isprintable() for each in found)
    if not is_each or not all(isinstance(each, str) for each in given):
        message = (
            f"The name of a label must have 1 to {MAX_LABEL_NAME_LENGTH} printable characters."
        )
        raise InvalidError(message, field=field)
    if len(found) > MAX_RULES_PER_KIND:
        raise InvalidError(f"Choose at most {MAX_RULES_PER_KIND} labels.", field=field)
    return found


def validate_payload_condition(
    path: PayloadPath, operator: object, words: object, *, field: str
) -> PayloadCondition:
    """Validate a rule that compares a value with words.

    Raise InvalidError if the operator or a word is not valid.
    """
    if operator not in set(Operator):
        message = f"The operator of a rule must be one of {', '.join(Operator)}."
        raise InvalidError(message, field=field)
    given = list(words) if isinstance(words, list | tuple) else []
    clean = tuple(dict.fromkeys(each.strip() for each in given if isinstance(each, str)))
    if not 0 < len(clean) <= _MAX_WORDS_PER_RULE or not all(clean):
        message = f"A rule must have 1 to {_MAX_WORDS_PER_RULE} words to compare with."
        raise InvalidError(message, field=field)
    if not all(map(is_rule_word, clean)):
        message = (
            f"A word of a rule can have at most {MAX_RULE_WORD_LENGTH} printable characters, and "
            "no comma."
        )
        raise InvalidError(message, field=field)
    return PayloadCondition(path, Operator(str(operator)), clean)


def validate_value_join(
    paths: tuple[PayloadPath, ...], separator: object, *, field: str
) -> ValueJoin:
    """Validate values that are appended to a field.

    Raise InvalidError if the number of paths or the separator is not valid.
    """
    if not 0 < len(paths) <= MAX_JOINED_VALUES:
        raise InvalidError(
            f"A field can have 1 to {MAX_JOINED_VALUES} appended values.", field=field
        )
    is_text = isinstance(separator, str) and len(separator) <= MAX_SEPARATOR_LENGTH
    if not is_text or not str(separator).isprintable():
        message = f"A separator can have at most {MAX_SEPARATOR_LENGTH} printable characters."
        raise InvalidError(message, field=field)
    return ValueJoin(paths, str(separator))


def validate_ignored_words(words: object, *, field: str) -> tuple[str, ...]:
    """Validate and normalize the words that a fingerprint ignores.

    Raise InvalidError if a word is not valid.
    """
    given = list(words) if isinstance(words, list | tuple) else [None]
    found = tuple(dict.fromkeys(map(normalize_word, given)))
    is_each = all(word and is_rule_word(word) and " " not in word for word in found)
    if not is_each or not all(isinstance(each, str) for each in given):
        message = (
            f"An ignored word must have 1 to {MAX_RULE_WORD_LENGTH} printable characters, and no "
            "space or comma."
        )
        raise InvalidError(message, field=field)
    if len(found) > MAX_IGNORED_WORDS:
        message = f"A fingerprint can ignore at most {MAX_IGNORED_WORDS} words."
        raise InvalidError(message, field=field)
    return found


def parse_mapping_rules(stored: object) -> MappingRules:
    """Parse stored rules.

    Raise InvalidError if the rules are malformed.
    """
    if not isinstance(stored, dict) or stored.keys() - _RULE_KEYS:
        raise InvalidError("The mapping rules are invalid.", field="rules")
    words = stored.get("severity_words", {})
    joins = stored.get("joins", {})
    if not (isinstance(words, dict) and isinstance(joins, dict)):
        raise InvalidError("The mapping rules are invalid.", field="rules")
    return MappingRules(
        severity_words=validate_severity_words(words, field="severity_words"),
        resolved_when=_parse_conditions(stored.get("resolved_when", []), "resolved_when"),
        is_guess=stored.get("is_guess") is True,
        confirmed=_parse_names(stored.get("confirmed", []), "confirmed"),
        dropped_when=_parse_conditions(stored.get("dropped_when", []), "dropped_when"),
        joins={name: _parse_join(given) for name, given in joins.items()},
        ignored_words=validate_ignored_words(
            stored.get("ignored_words", []), field="ignored_words"
        ),
        **{name: validate_label_names(stored.get(name, []), field=name) for name in LABEL_FIELDS},
    )


#: Names of the rule fields that contain labels.
LABEL_FIELDS = ("environment_labels", "service_labels")
_RULE_KEYS = {
    "severity_words",
    "resolved_when",
    "is_guess",
    "confirmed",
    "dropped_when",
    "joins",
    "ignored_words",
    *LABEL_FIELDS,
}


def _parse_names(stored: object, name: str) -> tuple[str, ...]:
    if not (isinstance(stored, list) and all(isinstance(each, str) for each in stored)):
        raise InvalidError("The mapping rules are invalid.", field=name)
    return tuple(dict.fromkeys(stored))


def _parse_conditions(stored: object, name: str) -> tuple[PayloadCondition, ...]:
    if not (isinstance(stored, list) and all(isinstance(each, dict) for each in stored)):
        raise InvalidError("The mapping rules are invalid.", field=name)
    return tuple(
        validate_payload_condition(
            validate_path(each.get("path")), each.get("operator"), each.get("words"), field=name
        )
        for each in stored
    )


def _parse_join(stored: object) -> ValueJoin:
    if not (isinstance(stored, dict) and isinstance(stored.get("paths"), list)):
        raise InvalidError("The appended values are invalid.", field="joins")
    paths = tuple(map(validate_path, stored["paths"]))
    return validate_value_join(paths, stored.get("separator", ": "), field="joins")


def serialize_mapping_rules(rules: MappingRules) -> dict[str, object]:
    """Return rules as a value for the JSON column, without empty fields."""
    written = {
        "severity_words": {word: each.value for word, each in rules.severity_words.items()},
        "resolved_when": list(map(_serialize_condition, rules.resolved_when)),
        "is_guess": rules.is_guess,
        "confirmed": list(rules.confirmed),
        "dropped_when": list(map(_serialize_condition, rules.dropped_when)),
        "joins": {
            name: {"paths": [list(path) for path in join.paths], "separator": join.separator}
            for name, join in rules.joins.items()
        },
        "ignored_words": list(rules.ignored_words),
        **{name: list(getattr(rules, name)) for name in LABEL_FIELDS},
    }
    return {name: value for name, value in written.items() if value}


def _serialize_condition(rule: PayloadCondition) -> dict[str, object]:
    return {
        "path": list(rule.path),
        "operator": rule.operator.value,
        "words": list(rule.words),
    }
