"""Offers answers to the questions about a proposed mapping, and applies the chosen answers."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from domain.alerts.integrations.mapping_types import RULE_QUESTION, MappingAnswer, MappingQuestion
from domain.alerts.integrations.samples import MappingDraft
from domain.alerts.reading.incoming import Severity
from domain.alerts.reading.mapping import AlertField, FieldMapping
from domain.alerts.reading.mapping_rules import MAX_JOINED_VALUES, ValueJoin, normalize_word
from domain.alerts.reading.paths import PayloadPath, find_value, format_path, serialize_path
from domain.alerts.reading.text import format_excerpt
from domain.alerts.recognition import fields as field_kinds
from domain.alerts.recognition.identity import is_object, list_subject_leaves, propose_identity
from domain.alerts.recognition.leaves import Leaf
from domain.alerts.recognition.messages import Messages
from domain.alerts.recognition.proposal import Finding
from domain.alerts.recognition.tools import Proposal, propose_mapping

#: Names of the questions, by words in their texts.
_QUESTION_WORDS = {
    "How severe is ": AlertField.SEVERITY.value,
    " always report the same problem": AlertField.FINGERPRINT.value,
    "No value identifies the alert": AlertField.FINGERPRINT.value,
    " a good title?": AlertField.TITLE.value,
    "looks like a title": AlertField.TITLE.value,
    "the affected host": AlertField.HOSTS.value,
    "Is the alert over if ": RULE_QUESTION,
    "shows that the alert is over": RULE_QUESTION,
}
QUESTION_NAMES = frozenset(_QUESTION_WORDS.values())
#: Answer that does not change the proposal.
KEEP = "keep"
#: Words of sentences that lead to another page. The answers replace these sentences.
_OTHER_PAGE = "under Configure"
_SENTENCE_END = re.compile(r"(?<=[.?]) (?=[A-Z])")
#: Maximum number of values that are offered as answers, and of words of a rule that are shown.
_MAX_VALUES = 4

#: Answers by their values: a label, and the mapping that results from the answer.
_Answers = dict[str, tuple[str, FieldMapping]]


def answer_draft(
    draft: MappingDraft, given: Mapping[str, str]
) -> tuple[FieldMapping, tuple[MappingQuestion, ...]]:
    """Return the mapping of a draft with the given answers, and its open questions.

    Parts of the mapping that differ from the proposal have been answered.
    """
    proposal, messages = propose_mapping(draft.messages), draft.messages
    answered, questions = answer_questions(proposal, messages, given, draft.mapping)
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
    proposed, questions = proposal.mapping, []
    mapping = current or proposed
    # Of several questions about one part, the last one is the most specific.
    asked = {find_question_name(text) or text: text for text in proposal.questions}
    for name, text in asked.items():
        options = _Options(proposed, messages, mapping)
        if current and options.is_changed(name):
            continue
        answers = options.list_answers(name, text) if name in QUESTION_NAMES else {}
        if current:
            answers.pop(KEEP, None)  # This answer would not be saved.
        answer = given.get(name) if given.get(name) in answers else None
        mapping = answers[answer][1] if answer else mapping
        choices = (MappingAnswer(value=each, label=answers[each][0]) for each in answers)
        shown = _shorten_question(text, proposed, has_answers=bool(answers))
        named = name if answers else None
        questions.append(
            MappingQuestion(name=named, text=shown, choices=tuple(choices), answer=answer)
        )
    rules = ((None, rule.sentence) for rule in mapping.rules.resolved_when)
    sources = {*mapping.sources.items(), *rules}
    findings = (
        *(each for each in proposal.findings if (each.field, each.source) in sources),
        *(
            Finding(field=field, source=source, confidence=_SURE, reason="you chose it")
            for field, source in mapping.sources.items()
            if source != proposed.sources[field]
        ),
    )
    return replace(proposal, mapping=mapping, findings=findings), tuple(questions)


_SURE = field_kinds.Confidence.SURE


def find_question_name(text: str) -> str | None:
    """Return the name of the part of a mapping that a question is about, or None."""
    return next((name for words, name in _QUESTION_WORDS.items() if words in text), None)


def _shorten_question(text: str, mapping: FieldMapping, *, has_answers: bool) -> str:
    for rule in mapping.rules.resolved_when:
        if len(rule.words) > _MAX_VALUES:
            short = replace(rule, words=rule.words[:_MAX_VALUES])
            text = text.replace(rule.sentence, f"{short.sentence} …")
    sentences = _SENTENCE_END.split(text)
    return " ".join(each for each in sentences if not (has_answers and _OTHER_PAGE in each))


@dataclass(frozen=True)
class _Options:
    """The answers that change a mapping. It consists of a proposal and previous answers."""

    proposed: FieldMapping
    messages: Messages
    mapping: FieldMapping

    def is_changed(self, name: str) -> bool:
        """Return whether the part of the mapping that a question is about is not as proposed."""
        one, other = (self._get_part(each, name) for each in (self.mapping, self.proposed))
        return one != other

    def _get_part(self, mapping: FieldMapping, name: str) -> object:
        if name == RULE_QUESTION:
            return mapping.rules.resolved_when
        if name == AlertField.SEVERITY:
            return mapping.rules.severity_words.get(self._severity_word)
        return {field.value: mapping.sources[field] for field in AlertField}.get(name)

    @property
    def _severity_word(self) -> str:
        path, *_ = self.proposed.paths.get(AlertField.SEVERITY, ((AlertField.SEVERITY.value,),))
        return normalize_word(find_value(self.messages.firing, path))

    def list_answers(self, name: str, text: str) -> _Answers:
        """Return the answers to a question, or no answers if they are not known."""
        rules, answers = self.mapping.rules, {}
        if name == AlertField.SEVERITY:
            for each in list(Severity)[:-1]:
                words = {**rules.severity_words, self._severity_word: each}
                is_same = words == rules.severity_words
                label = f"{each.value.capitalize()}{' (proposed)' if is_same else ''}"
                answers[each.value] = (label, self.mapping.with_rules(severity_words=words))
            return answers
        if name == RULE_QUESTION:
            none = self.mapping.with_rules(resolved_when=(), dropped_when=())
            answers = {"none": ("No, the tool sends no recoveries", none)}
            answers = answers if rules.resolved_when else {}
        else:
            answers = dict(self._list_values(AlertField(name)))
        keep = "Yes" if text.startswith(("Is ", "Do ")) else "None of these"
        return {KEEP: (keep, self.mapping), **answers} if answers else {}

    def _list_values(self, field: AlertField) -> Iterator[tuple[str, tuple[str, FieldMapping]]]:
        """Yield an answer for each value that may fit a field better than the present value."""
        join = self.mapping.rules.joins.get(field.value, ValueJoin(()))
        current = (*self.mapping.paths.get(field, ((field.value,),))[:1], *join.paths)
        is_added = field is AlertField.FINGERPRINT and (
            len(current) > 1 or field in self.mapping.paths
        )
        if is_added and len(current) > MAX_JOINED_VALUES:
            return
        # A part of the title can be the better title, but the title is not the host.
        titles = self.mapping.paths.get(AlertField.TITLE, ())
        taken = {*(current[:1] if field is AlertField.TITLE else (*current, *titles))}
        texts: dict[str, Leaf] = {}
        for leaf in self._find_leaves(field, taken):
            text = str(leaf.value).strip().casefold()
            if leaf.path not in taken and text not in {"", "[]", *field_kinds.NO_NAMES}:
                texts.setdefault(text, leaf)
        for leaf in list(texts.values())[:_MAX_VALUES]:
            label = f"{format_excerpt(leaf.value)}, {format_path(leaf.path)}"
            label = f"No, also compare {label}" if is_added else label
            paths = (*current, leaf.path) if is_added else (leaf.path,)
            yield serialize_path(leaf.path), (label, self.choose(field, paths))

    def _find_leaves(self, field: AlertField, taken: set[PayloadPath]) -> Iterator[Leaf]:
        """Yield values that may fit a field, best first."""
        stable = [leaf for leaf in self.messages.stable_leaves if not leaf.is_about_other]
        if field is AlertField.FINGERPRINT:
            yield from (*list_subject_leaves(stable), *filter(is_object, stable))
            return
        known = {*taken}
        for _ in range(_MAX_VALUES):
            if best := field_kinds.find_field(field, self.messages.leaves, known):
                known.add(best.leaf.path)
                yield best.leaf
        if field is AlertField.HOSTS:
            is_host = field_kinds.is_host_name
            yield from (leaf for leaf in stable if is_object(leaf) or is_host(leaf))

    def choose(self, field: AlertField, paths: tuple[PayloadPath, ...]) -> FieldMapping:
        """Return the mapping that reads a field from the first path, and joins the others.

        A host also becomes part of a fingerprint that is as proposed.
        """
        first, *more = paths
        joins = dict(self.mapping.rules.joins)
        join = joins.pop(field.value, ValueJoin(()))
        if field is AlertField.TITLE:
            more = [path for path in join.paths if path != first]
        if more:
            joins[field.value] = replace(join, paths=tuple(more))
        sources = {**self.mapping.paths, field: (first,)}
        mapping = FieldMapping(sources, replace(self.mapping.rules, joins=joins))
        if field is not AlertField.HOSTS or self.is_changed(AlertField.FINGERPRINT.value):
            return mapping
        environment = mapping.paths.get(AlertField.ENVIRONMENT, (None,))[0]
        identity = propose_identity(self.messages, first, environment)
        options = replace(self, mapping=mapping)
        return options.choose(AlertField.FINGERPRINT, identity.paths) if identity else mapping
