"""Offers answers to the questions about a proposed mapping, and applies the chosen answers."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from domain.alerts.integrations.mapping_types import RULE_QUESTION, MappingAnswer, MappingQuestion
from domain.alerts.integrations.samples import MappingDraft
from domain.alerts.reading.incoming import Severity
from domain.alerts.reading.mapping import AlertField, FieldMapping
from domain.alerts.reading.mapping_rules import (
    MAX_JOINED_VALUES,
    Operator,
    PayloadCondition,
    ValueJoin,
    is_rule_word,
    normalize_word,
)
from domain.alerts.reading.paths import PayloadPath, find_value, format_path, serialize_path
from domain.alerts.reading.text import format_excerpt
from domain.alerts.recognition.fields import (
    NO_NAMES,
    Confidence,
    find_affected,
    find_field,
    is_host_name,
)
from domain.alerts.recognition.identity import is_object, list_subject_leaves, propose_identity
from domain.alerts.recognition.leaves import Leaf, list_leaves
from domain.alerts.recognition.messages import Messages
from domain.alerts.recognition.proposal import Finding
from domain.alerts.recognition.tools import Proposal, propose_mapping

QUESTION_NAMES = ("title", "severity", "hosts", "fingerprint", RULE_QUESTION)
#: Answer that does not change the proposal.
KEEP = "keep"
#: Words in the texts of questions, and the part of the mapping that they are about.
_QUESTION_WORDS = {
    "How severe is ": AlertField.SEVERITY,
    " always report the same problem": AlertField.FINGERPRINT,
    "No value identifies the alert": AlertField.FINGERPRINT,
    " a good title?": AlertField.TITLE,
    "looks like a title": AlertField.TITLE,
    "the affected host": AlertField.HOSTS,
    "Is the alert over if ": RULE_QUESTION,
    "shows that the alert is over": RULE_QUESTION,
}
#: Words of sentences that lead to another page. The answers replace these sentences.
_OTHER_PAGE = "under Configure"
_SENTENCE_END = re.compile(r"(?<=[.?]) (?=[A-Z])")
#: Maximum number of values that are offered as answers.
_MAX_VALUES = 4
#: Length of a question above which only the first words of its rule are shown.
_MAX_LENGTH = 200

#: Answers by their values: a label, and the mapping that results from the answer.
_Answers = dict[str, tuple[str, FieldMapping]]


def answer_draft(
    draft: MappingDraft, given: Mapping[str, str]
) -> tuple[FieldMapping, tuple[MappingQuestion, ...]]:
    """Return the mapping of a draft with the given answers, and its open questions.

    Parts of the mapping that differ from the proposal have been answered.
    """
    proposal, mapping = propose_mapping(draft.messages), draft.mapping
    answered, questions = answer_questions(proposal, draft.messages, given, mapping)
    return answered.mapping, questions


def answer_questions(
    proposal: Proposal,
    messages: Messages,
    given: Mapping[str, str],
    current: FieldMapping | None = None,
) -> tuple[Proposal, tuple[MappingQuestion, ...]]:
    """Return a proposal with the given answers, by the names of the questions, and the questions.

    Answers change the `current` mapping if there is one, or else the proposed mapping.
    """
    mapping, questions = current or proposal.mapping, []
    # Of several questions about one part, the last one is the most specific.
    asked = {find_question_name(text) or text: text for text in proposal.questions}
    for name, text in asked.items():
        options = _Options(proposal.mapping, messages, mapping)
        if current and options.is_changed(name):
            continue
        answers = options.list_answers(name, text)
        if current:
            answers.pop(KEEP, None)  # This answer would not be saved.
        answer = given.get(name) if given.get(name) in answers else None
        mapping = answers[answer][1] if answer else mapping
        kept = [each for each in _SENTENCE_END.split(text) if not (answers and _OTHER_PAGE in each)]
        for rule in proposal.mapping.rules.resolved_when if len(text) > _MAX_LENGTH else ():
            short = replace(rule, words=rule.words[:_MAX_VALUES])
            kept = [each.replace(rule.sentence, f"{short.sentence} …") for each in kept]
        questions.append(
            MappingQuestion(
                name=name if answers else None,
                text=" ".join(kept),
                choices=tuple(
                    MappingAnswer(value=each, label=answers[each][0]) for each in answers
                ),
                answer=answer,
            )
        )
    findings = tuple(_list_findings(proposal, mapping))
    return replace(proposal, mapping=mapping, findings=findings), tuple(questions)


def find_question_name(text: str) -> str | None:
    """Return the name of the part of a mapping that a question is about, or None."""
    return next((name for words, name in _QUESTION_WORDS.items() if words in text), None)


def _list_findings(proposal: Proposal, mapping: FieldMapping) -> Iterator[Finding]:
    """Yield the findings about a mapping in which answers have replaced parts of a proposal."""
    found = {each.field: each for each in proposal.findings}
    proposed = {
        *proposal.mapping.sources.items(),
        *((None, each.source) for each in found.values()),
    }
    rules = [(None, rule.sentence) for rule in mapping.rules.resolved_when]
    for field, source in (*mapping.sources.items(), *rules):
        if (field, source) in proposed:
            yield from filter(None, [found.get(field)])
        else:
            reason = "you chose it"
            yield Finding(field=field, source=source, confidence=Confidence.SURE, reason=reason)


@dataclass(frozen=True)
class _Options:
    """The answers that change a mapping. It consists of a proposal and previous answers."""

    proposed: FieldMapping
    messages: Messages
    mapping: FieldMapping

    def is_changed(self, name: str) -> bool:
        """Return whether the part of the mapping that a question is about is not as proposed."""
        return self._get_part(self.mapping, name) != self._get_part(self.proposed, name)

    def _get_part(self, mapping: FieldMapping, name: str) -> object:
        if name == RULE_QUESTION:
            return mapping.rules.resolved_when
        if name == AlertField.SEVERITY:
            return mapping.rules.severity_words.get(self._severity_word)
        return {str(field): source for field, source in mapping.sources.items()}.get(name)

    def list_answers(self, name: str, text: str) -> _Answers:
        """Return the answers to a question, or no answers if they are not known."""
        if name not in QUESTION_NAMES:
            return {}
        if name == AlertField.SEVERITY:
            return dict(self._list_severities())
        answers = dict(self._list_rules() if name == RULE_QUESTION else self._list_values(name))
        keep = "Yes" if text.startswith(("Is ", "Do ")) else "None of these"
        return {KEEP: (keep, self.mapping), **answers} if answers else {}

    @property
    def _severity_word(self) -> str:
        path, *_ = self.proposed.paths.get(AlertField.SEVERITY, ((AlertField.SEVERITY.value,),))
        return normalize_word(find_value(self.messages.firing, path))

    def _list_severities(self) -> Iterator[tuple[str, tuple[str, FieldMapping]]]:
        words = self.mapping.rules.severity_words
        for each in Severity:
            mapping = self.mapping.with_rules(severity_words={**words, self._severity_word: each})
            is_proposed = words.get(self._severity_word) is each
            label = f"{each.value.capitalize()}{' (proposed)' if is_proposed else ''}"
            if each is not Severity.UNKNOWN:
                yield each.value, (label, mapping)

    def _list_rules(self) -> Iterator[tuple[str, tuple[str, FieldMapping]]]:
        """Yield the answer that there are no recoveries, or rules for new words of the recovery."""
        if self.mapping.rules.resolved_when:
            none = self.mapping.with_rules(resolved_when=(), dropped_when=())
            yield "none", ("No, the tool sends no recoveries", none)
            return
        leaves = [leaf for leaf in list_leaves(self.messages.recovery or {}) if leaf.is_word]
        new = [each for each in leaves if find_value(self.messages.firing, each.path) != each.value]
        words = [(leaf.path, normalize_word(leaf.value)) for leaf in new if not leaf.is_time]
        for path, word in [each for each in words if is_rule_word(each[1])][:_MAX_VALUES]:
            rule = PayloadCondition(path, Operator.IS, (word,))
            yield (
                serialize_path(path),
                (rule.sentence, self.mapping.with_rules(resolved_when=(rule,))),
            )

    def _list_values(self, name: str) -> Iterator[tuple[str, tuple[str, FieldMapping]]]:
        """Yield an answer for each value that may fit a field better than the present value."""
        field = AlertField(name)
        join = self.mapping.rules.joins.get(name, ValueJoin(()))
        current = (*self.mapping.paths.get(field, ((name,),))[:1], *join.paths)
        is_added = field is AlertField.FINGERPRINT and (
            len(current) > 1 or name in self.mapping.paths
        )
        if is_added and len(current) > MAX_JOINED_VALUES:
            return
        other = self.mapping.paths.get(AlertField.TITLE, ()) if field is AlertField.HOSTS else ()
        taken = () if field is AlertField.TITLE else (*current, *other)
        for leaf in self._find_leaves(field, taken):
            paths = (*current, leaf.path) if is_added else (leaf.path,)
            label = f"{format_excerpt(leaf.text or leaf.value)}, {format_path(leaf.path)}"
            label = f"No, also compare {label}" if is_added else label
            yield serialize_path(leaf.path), (label, self.choose(field, paths))

    def _find_leaves(self, field: AlertField, taken: tuple[PayloadPath, ...]) -> list[Leaf]:
        """Return values that may fit a field, best first, without equal ones."""
        stable = [leaf for leaf in self.messages.stable_leaves if not leaf.is_about_other]
        found: list[Leaf] = []
        if field is AlertField.FINGERPRINT:
            found = [*list_subject_leaves(stable), *filter(is_object, stable)]
        seen = {*taken, *self.mapping.paths.get(field, ((field.value,),))}
        while field is not AlertField.FINGERPRINT and len(found) < _MAX_VALUES:
            best = find_field(field, self.messages.leaves, seen)
            if best is None and field is AlertField.HOSTS:
                best = find_affected(self.messages.leaves, seen)
            if best is None:
                break
            found.append(best.leaf)
            seen.add(best.leaf.path)
        if field is AlertField.HOSTS:
            found += [leaf for leaf in stable if is_object(leaf) or is_host_name(leaf)]
        texts: dict[str, Leaf] = {}
        for leaf in found:
            if leaf.value not in (None, "", []) and leaf.path not in taken:
                texts.setdefault(str(leaf.value).strip().casefold(), leaf)
        return [texts[each] for each in texts if each not in NO_NAMES][:_MAX_VALUES]

    def choose(self, field: AlertField, paths: tuple[PayloadPath, ...]) -> FieldMapping:
        """Return the mapping that reads a field from paths, of which the first is no join.

        A host also becomes part of a fingerprint that is as proposed.
        """
        first, *more = paths
        joins = dict(self.mapping.rules.joins)
        join = joins.pop(field.value, ValueJoin(()))
        # A title keeps its other joined values.
        more += [path for path in join.paths if path != first and field is AlertField.TITLE]
        if more:
            joins[field.value] = replace(join, paths=tuple(more))
        changed = {**self.mapping.paths, field: (first,)}
        if first == (field.value,):
            del changed[field]
        mapping = FieldMapping(changed, replace(self.mapping.rules, joins=joins))
        identity, name = None, AlertField.FINGERPRINT.value
        if field is AlertField.HOSTS and not self.is_changed(name):
            environment = mapping.paths.get(AlertField.ENVIRONMENT, (None,))[0]
            identity = propose_identity(self.messages, first, environment)
        options = replace(self, mapping=mapping)
        return options.choose(AlertField.FINGERPRINT, identity.paths) if identity else mapping
