"""Offers answers to the questions about a proposed mapping, and applies the chosen answers."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from domain.alerts.integrations.mapping_types import MappingAnswer, MappingQuestion
from domain.alerts.reading.incoming import Severity
from domain.alerts.reading.mapping import AlertField, FieldMapping
from domain.alerts.reading.mapping_rules import MAX_JOINED_VALUES, ValueJoin, normalize_word
from domain.alerts.reading.paths import PayloadPath, find_value, format_path, serialize_path
from domain.alerts.reading.text import format_excerpt
from domain.alerts.recognition.fields import NO_NAMES, Confidence
from domain.alerts.recognition.identity import propose_identity
from domain.alerts.recognition.leaves import Leaf
from domain.alerts.recognition.messages import Messages
from domain.alerts.recognition.proposal import RULE_QUESTION, Finding, Question
from domain.alerts.recognition.tools import Proposal, propose_mapping

#: Answer that does not change the proposal.
KEEP = "keep"
_ADVICE = "You can change this in the mapping of the integration."
#: Maximum number of values that are offered as answers.
_MAX_VALUES = 4

#: Answers by their values: a label, and the mapping that results from the answer.
_Answers = dict[str, tuple[str, FieldMapping]]


def answer_questions(
    messages: Messages, given: Mapping[str, str], current: FieldMapping | None = None
) -> tuple[Proposal, tuple[MappingQuestion, ...]]:
    """Return the proposal for messages with the given answers, and the questions.

    Answers have the names of the questions. They change the `current` mapping if there is one, or
    else the proposed mapping. Parts of the current mapping that differ from the proposal have been
    answered.
    """
    proposal = propose_mapping(messages)
    proposed, questions = proposal.mapping, []
    mapping = current or proposed
    # If several questions have the same name, the last question is the most specific.
    asked = {each.name or each.text: each for each in proposal.questions}
    for name, question in asked.items():
        options = _Options(proposed, messages, mapping)
        if current and question.name and options.is_changed(name):
            continue
        answers = options.list_answers(question)
        if current and name != RULE_QUESTION:
            answers.pop(KEEP, None)  # This answer would not be saved.
        answer = given.get(name) if given.get(name) in answers else None
        mapping = answers[answer][1] if answer else mapping
        choices = (MappingAnswer(value=each, label=answers[each][0]) for each in answers)
        text = f"{question.text} {_ADVICE}" if question.name and not answers else question.text
        named = name if answers else None
        shown = MappingQuestion(name=named, text=text, choices=tuple(choices), answer=answer)
        questions.append(shown)
    rules = ((None, rule.sentence) for rule in mapping.rules.resolved_when)
    sources = {*mapping.sources.items(), *rules}
    findings = (
        *(each for each in proposal.findings if (each.field, each.source) in sources),
        *(
            Finding(field, source, Confidence.SURE, "you chose it")
            for field, source in mapping.sources.items()
            if source != proposed.sources[field]
        ),
    )
    return replace(proposal, mapping=mapping, findings=findings), tuple(questions)


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
            return mapping.rules.resolved_when, mapping.rules.is_guess
        if name == AlertField.SEVERITY:
            return mapping.rules.severity_words.get(self._severity_word)
        return mapping.sources.get(AlertField(name))

    @property
    def _severity_word(self) -> str:
        path, *_ = self.proposed.paths.get(AlertField.SEVERITY, ((AlertField.SEVERITY.value,),))
        return normalize_word(find_value(self.messages.firing, path))

    def list_answers(self, question: Question) -> _Answers:
        """Return the answers to a question, or no answers if they are not known."""
        rules, answers, name = self.mapping.rules, {}, question.name
        if name == AlertField.SEVERITY:
            for each in list(Severity)[:-1]:
                words = {**rules.severity_words, self._severity_word: each}
                is_same = words == rules.severity_words
                label = f"{each.value.capitalize()}{' (proposed)' if is_same else ''}"
                answers[each.value] = (label, self.mapping.with_rules(severity_words=words))
            return answers
        if name == RULE_QUESTION:
            confirmed = self.mapping.with_rules(is_guess=False)
            none = confirmed.with_rules(resolved_when=(), dropped_when=())
            answers = {KEEP: ("Yes", confirmed), "none": ("No, the tool sends no recoveries", none)}
            return answers if rules.resolved_when else {}
        if name is not None:
            answers = dict(self._list_values(AlertField(name), question.candidates))
        keep = "Yes" if question.is_confirmation else "None of these"
        return {KEEP: (keep, self.mapping), **answers} if answers else {}

    def _list_values(
        self, field: AlertField, candidates: tuple[Leaf, ...]
    ) -> Iterator[tuple[str, tuple[str, FieldMapping]]]:
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
        for leaf in candidates:
            text = str(leaf.value).strip().casefold()
            if leaf.path not in taken and text not in {"", "[]", *NO_NAMES}:
                texts.setdefault(text, leaf)
        for leaf in list(texts.values())[:_MAX_VALUES]:
            label = f"{format_excerpt(leaf.value)}, {format_path(leaf.path)}"
            label = f"No, also compare {label}" if is_added else label
            paths = (*current, leaf.path) if is_added else (leaf.path,)
            yield serialize_path(leaf.path), (label, self.choose(field, paths))

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
