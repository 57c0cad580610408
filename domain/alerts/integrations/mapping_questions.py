"""Offers answers to the questions about a proposed mapping, and applies the chosen answers."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from domain.access.actor import UnitOfWork
from domain.alerts.formats.base import ParserSettings
from domain.alerts.integrations.integrations import can_customize_integrations
from domain.alerts.integrations.mapping_types import MappingAnswer, MappingQuestion
from domain.alerts.integrations.samples import get_saved_messages, load_draft
from domain.alerts.integrations.types import IntegrationView
from domain.alerts.parsing.incoming_alert import Severity
from domain.alerts.parsing.mapping import AlertField, FieldMapping
from domain.alerts.parsing.mapping_rules import MAX_JOINED_VALUES, ValueJoin, normalize_word
from domain.alerts.parsing.payload_paths import PayloadPath, find_value, format_path, serialize_path
from domain.alerts.parsing.severity import MISSING_SEVERITY
from domain.alerts.parsing.text_conversion import format_excerpt, is_blank
from domain.alerts.recognition.fields import NO_NAMES, Confidence
from domain.alerts.recognition.identity import propose_identity
from domain.alerts.recognition.known_tools import Proposal, propose_mapping
from domain.alerts.recognition.leaves import Leaf
from domain.alerts.recognition.messages import Messages
from domain.alerts.recognition.proposal import ProposalPart
from domain.alerts.recognition.questions import (
    ANSWER_SEPARATOR,
    QUESTION_NAMES,
    RULE_QUESTION,
    Question,
)
from domain.core.database.pagination import shorten_parameter_name
from domain.core.errors import InvalidError, InvalidParametersError, InvalidValue
from domain.core.word_joining import join_words

#: Answer that does not change the proposal.
KEEP = "keep"
_ADVICE = "You can change this in the mapping of the integration."
#: Endings of statements that offer values as answers, by the names of the questions.
_ENDINGS = {
    AlertField.TITLE: " Is the title one of these values?",
    AlertField.HOSTS: " Is the host or object one of these values?",
    AlertField.FINGERPRINT: " Does one of these values identify it?",
}
#: Maximum number of values that are offered as answers, and as additions to the fingerprint.
_MAX_VALUES, _MAX_ADDED_VALUES = 4, 6

#: Maximum number of revisions whose questions are counted in memory.
_MAX_QUESTION_COUNTS = 1_000
#: Numbers of open questions in this process, by the mapping's revision and the nesting limit.
_question_counts: dict[tuple[str, int], int] = {}
_Key = TypeVar("_Key")
_Entry = TypeVar("_Entry")
#: Labels and resulting mappings of answers, by the value of the answer.
_Answers = dict[str, tuple[str, FieldMapping]]


def apply_answers(
    messages: Messages, given: Mapping[str, str], current: FieldMapping | None = None
) -> tuple[Proposal, tuple[MappingQuestion, ...]]:
    """Return the mapping proposal for messages, and the questions about the mapping.

    `given` contains the chosen answers by question name. The answers change the `current` mapping,
    or the proposed mapping if there is no current mapping. Questions are omitted for parts of the
    current mapping that a user has confirmed or changed. The current mapping must not contain the
    given answers yet (`remove_answers`).
    """
    proposal = propose_mapping(messages)
    proposed, questions = proposal.mapping, []
    mapping = initial = current or proposed
    # If several questions have the same name, the last question is the most specific.
    asked = {each.name or each.text: each for each in proposal.questions}
    for name, question in asked.items():
        options = _AnswerBuilder(proposed, messages, mapping)
        is_known = question.name is not None
        if is_known and replace(options, mapping=initial).is_changed(name):
            continue
        # The answer about the host can also change the fingerprint.
        is_settled = name in mapping.rules.confirmed or (is_known and options.is_changed(name))
        if is_settled and not given.get(name):
            continue
        answers = options.list_answers(question)
        is_multiple = options.is_multiple(question)
        chosen = _list_chosen_answers(given.get(name, ""), answers, is_multiple=is_multiple)
        mapping = options.apply(question, chosen)
        choices = (MappingAnswer(value=each, label=answers[each][0]) for each in answers)
        shown = MappingQuestion(
            name=name if answers else None,
            text=f"{question.text}{_get_question_suffix(question, answers)}",
            choices=tuple(choices),
            is_multiple=is_multiple,
            answer=ANSWER_SEPARATOR.join(chosen) or None,
        )
        questions.append(shown)
    rules = ((None, rule.phrase) for rule in mapping.rules.resolved_when)
    sources = {*mapping.sources.items(), *rules}
    findings = (
        *(each for each in proposal.findings if (each.field, each.source) in sources),
        *_list_chosen_parts(mapping, proposed, given),
    )
    return replace(proposal, mapping=mapping, findings=findings), tuple(questions)


def _list_chosen_answers(given: str, answers: _Answers, *, is_multiple: bool) -> list[str]:
    """Return the known answers. A chosen value replaces the answer that keeps the proposal."""
    known = [each for each in given.split(ANSWER_SEPARATOR) if each in answers]
    chosen = [each for each in known if each != KEEP] or known
    return chosen if is_multiple else chosen[:1]


def _list_chosen_parts(
    mapping: FieldMapping, proposed: FieldMapping, given: Mapping[str, str]
) -> Iterator[ProposalPart]:
    """Yield the parts of a mapping that differ from the proposal because of a user's choices."""
    hosts, fingerprint = AlertField.HOSTS, AlertField.FINGERPRINT
    is_joined = given.get(hosts, KEEP) != KEEP and not given.get(fingerprint)
    for field, source in mapping.sources.items():
        if source == proposed.sources[field]:
            continue
        if field == fingerprint and is_joined:
            reason = "it contains the host or object that you chose"
            yield ProposalPart(field, source, Confidence.LIKELY, reason)
        else:
            yield ProposalPart(field, source, Confidence.SURE, "you chose it")


def propose_mapping_again(messages: Messages, current: FieldMapping) -> FieldMapping:
    """Return a new proposal for messages, keeping the answers that the current mapping reflects."""
    proposal = propose_mapping(messages)
    mapping = proposal.mapping
    for question in proposal.questions:
        name = question.name or ""
        options = _AnswerBuilder(proposal.mapping, messages, mapping)
        possible = [[each] for each in options.list_answers(question)]
        if options.is_multiple(question):
            paths = _list_field_paths(current, AlertField(name))
            known = {serialize_path(path) for path in paths}
            possible.append([each for (each,) in possible if each in known])
        for given in possible:
            is_given = given != [KEEP] or name in current.rules.confirmed
            answered = options.apply(question, given)
            if is_given and options.has_same_part(answered, current, name):
                mapping = answered
                break
    return mapping


def remove_answers(
    messages: Messages, applied: Mapping[str, str], current: FieldMapping
) -> FieldMapping:
    """Return a mapping with the proposed parts instead of the answers that were applied to it.

    Parts that were changed after the answers were applied are not replaced.
    """
    if not any(applied.values()):
        return current
    proposed = propose_mapping(messages).mapping
    answered = apply_answers(messages, applied)[0].mapping
    fields = (AlertField.TITLE, AlertField.HOSTS, AlertField.SERVICE, AlertField.FINGERPRINT)
    same = {each for each in fields if current.sources[each] == answered.sources[each]}
    joins = _replace_entries(current.rules.joins, proposed.rules.joins, same)
    rules = replace(current.rules, joins=joins)
    for name in ("resolved_when", "dropped_when"):
        if applied.get(RULE_QUESTION) and getattr(rules, name) == getattr(answered.rules, name):
            rules = replace(rules, **{name: getattr(proposed.rules, name)})
    if rules.resolved_when != current.rules.resolved_when:
        rules = replace(rules, is_guess=proposed.rules.is_guess)
    return FieldMapping(_replace_entries(current.paths, proposed.paths, same), rules)


def _replace_entries(
    current: Mapping[_Key, _Entry], proposed: Mapping[_Key, _Entry], keys: Collection[object]
) -> dict[_Key, _Entry]:
    """Return the current entries, with the proposed entries for some keys."""
    kept = {key: value for key, value in current.items() if key not in keys}
    return kept | {key: value for key, value in proposed.items() if key in keys}


def count_open_questions(work: UnitOfWork, integration: IntegrationView) -> int:
    """Return the number of questions about the saved mapping that users can answer.

    The number is computed once for each revision of the mapping, because reading a sample with many
    keys takes up to half a second.
    """
    if not (integration.type.has_mapping and can_customize_integrations(work)):
        return 0
    limit = work.policy(ParserSettings).nesting_limit
    key = (integration.mapping_revision, limit)
    count = _question_counts.get(key)
    if count is None:
        count = _count_questions(integration, nesting_limit=limit)
        if len(_question_counts) >= _MAX_QUESTION_COUNTS:
            _question_counts.clear()
        _question_counts[key] = count
    return count


def _count_questions(integration: IntegrationView, *, nesting_limit: int) -> int:
    try:
        draft = load_draft(
            get_saved_messages(integration), integration, nesting_limit=nesting_limit
        )
    except InvalidError:
        return 0
    questions = apply_answers(draft.messages, {}, draft.mapping)[1] if draft else ()
    return sum(each.is_open for each in questions)


def check_answers(given: Mapping[str, str], questions: Sequence[MappingQuestion]) -> None:
    """Check that each answer is among the choices of its question.

    Raise InvalidParametersError for any other answer.
    """
    choices = {each.name: [choice.value for choice in each.choices] for each in questions}
    multiple = {each.name for each in questions if each.is_multiple}
    problems = []
    for name, value in given.items():
        known = choices.get(name, (KEEP,) if name in QUESTION_NAMES else ())
        values = value.split(ANSWER_SEPARATOR) if name in multiple else [value]
        if not set(values) <= set(known):
            text = _describe_wrong_answer(name, choices)
            problems.append(InvalidValue(f"answers.{shorten_parameter_name(name)}", text))
    if problems:
        raise InvalidParametersError(problems)


def _describe_wrong_answer(name: str, choices: Mapping[str | None, Sequence[str]]) -> str:
    if name in choices:
        return f"must be {join_words(choices[name], 'or')}"
    names = sorted(filter(None, choices))
    beginning = "the questions are" if names[1:] else "the only question is"
    known = f"{beginning} {join_words(names)}" if names else "there are no questions"
    return f"is not a question about these messages: {known}"


def _get_question_suffix(question: Question, answers: Collection[str]) -> str:
    """Return the text to append to a question, depending on its possible answers."""
    if question.name is None or question.name == RULE_QUESTION:
        return ""
    if not {*answers} - {KEEP}:
        return f" {_ADVICE}"
    return "" if question.is_confirmation else _ENDINGS.get(AlertField(question.name), "")


@dataclass(frozen=True)
class _AnswerBuilder:
    """Builds the possible answers to the questions about a mapping.

    Each answer contains the mapping that results from choosing it.
    """

    proposed: FieldMapping
    messages: Messages
    mapping: FieldMapping

    def is_changed(self, name: str) -> bool:
        """Return whether a question's part of the mapping differs from the proposal."""
        return not self.has_same_part(self.mapping, self.proposed, name)

    def has_same_part(self, first: FieldMapping, second: FieldMapping, name: str) -> bool:
        """Return whether two mappings are the same in the part that a question is about."""
        return self._get_part(first, name) == self._get_part(second, name)

    def _get_part(self, mapping: FieldMapping, name: str) -> object:
        if name == RULE_QUESTION:
            return mapping.rules.resolved_when, mapping.rules.is_guess
        if name == AlertField.SEVERITY:
            source = mapping.sources[AlertField.SEVERITY]
            return source, mapping.rules.severity_words.get(self._severity_word)
        fields = (name, AlertField.SERVICE) if name == AlertField.HOSTS else (name,)
        sources = [mapping.sources.get(AlertField(each)) for each in fields]
        return sources, mapping.rules.ignored_words if name == AlertField.FINGERPRINT else ()

    @property
    def _severity_word(self) -> str:
        path, *_ = self.proposed.paths.get(AlertField.SEVERITY, ((AlertField.SEVERITY.value,),))
        value = find_value(self.messages.firing, path)
        return MISSING_SEVERITY if is_blank(value) else normalize_word(value)

    def list_answers(self, question: Question) -> _Answers:
        """Return the possible answers to a question, with the resulting mappings.

        The dictionary is empty if no answers are known.
        """
        rules, answers, name = self.mapping.rules, _Answers(), question.name
        if name == AlertField.SEVERITY:
            confirmed = self._confirm(name)
            for each in list(Severity)[:-1]:
                words = {**rules.severity_words, self._severity_word: each}
                is_same = rules.severity_words.get(self._severity_word, Severity.CRITICAL) is each
                label = f"{each.value.capitalize()}{' (proposed)' if is_same else ''}"
                answers[each.value] = (label, confirmed.with_rules(severity_words=words))
            return answers
        if name == RULE_QUESTION:
            confirmed = self._confirm(name).with_rules(is_guess=False)
            none = confirmed.with_rules(resolved_when=(), dropped_when=())
            if not rules.resolved_when:
                return {KEEP: ("Users resolve these alerts", confirmed)}
            is_pasted = self.messages.recovery is not None
            no = "No, users resolve them" if is_pasted else "No, the tool sends no recoveries"
            return {KEEP: ("Yes", confirmed), "none": (no, none)}
        if name not in QUESTION_NAMES:
            return {}
        answers = dict(self._list_value_answers(AlertField(name), question.candidates))
        keep = "None of these" if answers else "Keep it this way"
        keep = "Yes" if question.is_confirmation else keep
        if name == AlertField.HOSTS and question.is_confirmation:
            answers["none"] = ("None of these", self._remove_host())
        return {KEEP: (keep, self._confirm(name)), **answers}

    def _remove_host(self) -> FieldMapping:
        """Return a copy of the mapping without the host in any field."""
        name = AlertField.FINGERPRINT
        hosts = self.mapping.paths.get(AlertField.HOSTS, ())
        paths = dict(self.mapping.paths)
        paths.pop(AlertField.HOSTS, None)
        joins = dict(self.mapping.rules.joins)
        title = joins.pop(AlertField.TITLE.value, ValueJoin(()))
        if appended := tuple(path for path in title.paths if path not in hosts):
            joins[AlertField.TITLE.value] = replace(title, paths=appended)
        rules = replace(self.mapping.rules, joins=joins)
        options = replace(self, mapping=FieldMapping(paths, rules))
        compared = _list_field_paths(self.mapping, name)
        kept = tuple(path for path in compared if path not in hosts)
        is_same = kept == compared or not kept or self.is_changed(name.value)
        return options.mapping if is_same else options.build_mapping_for_paths(name, kept)

    def is_multiple(self, question: Question) -> bool:
        """Return whether several answers to a question can be chosen.

        Each answer adds a value to the fingerprint.
        """
        return question.name == AlertField.FINGERPRINT and self._is_added(AlertField.FINGERPRINT)

    def _is_added(self, field: AlertField) -> bool:
        """Return whether a chosen value is added to the values of a field."""
        is_read = len(_list_field_paths(self.mapping, field)) > 1 or field in self.mapping.paths
        return field is AlertField.FINGERPRINT and is_read

    def apply(self, question: Question, chosen: Sequence[str]) -> FieldMapping:
        """Return the mapping that results from one answer or several answers to a question."""
        mapping = self.mapping
        for each in chosen:
            answers = replace(self, mapping=mapping).list_answers(question)
            mapping = answers[each][1] if each in answers else mapping
        return mapping

    def _confirm(self, name: str) -> FieldMapping:
        """Return a copy of the mapping in which the question is recorded as confirmed."""
        confirmed = dict.fromkeys((*self.mapping.rules.confirmed, name))
        return self.mapping.with_rules(confirmed=tuple(confirmed))

    def _list_value_answers(
        self, field: AlertField, candidates: tuple[Leaf, ...]
    ) -> Iterator[tuple[str, tuple[str, FieldMapping]]]:
        """Yield an answer for each value that may fit a field better than the current value."""
        current, proposed = (
            _list_field_paths(each, field) for each in (self.mapping, self.proposed)
        )
        is_added = self._is_added(field)
        if is_added and len(current) > MAX_JOINED_VALUES:
            return
        # Part of the title can be a better title. The whole title is offered as the host only if no
        # other value can be the host.
        only = candidates[0].path if len(candidates) == 1 else None
        titles = {*self.mapping.paths.get(AlertField.TITLE, ())} - {only}
        taken = {*(proposed[:1] if field is AlertField.TITLE else (*proposed, *titles))}
        values = {str(find_value(self.messages.firing, path)).casefold() for path in current}
        texts: dict[str, Leaf] = {}
        for leaf in candidates:
            text = str(leaf.value).strip().casefold()
            is_same = is_added and leaf.path not in current and text in values
            if leaf.path not in taken and not is_same and text not in {"", "[]", *NO_NAMES}:
                texts.setdefault(text, leaf)
        for leaf in list(texts.values())[: _MAX_ADDED_VALUES if is_added else _MAX_VALUES]:
            label = f"{format_excerpt(leaf.value)}, {format_path(leaf.path)}"
            label = f"Also compare {label}" if is_added else label
            added = tuple(dict.fromkeys((*current, leaf.path)))
            paths = added if is_added else self._complete_paths(field, leaf.path)
            yield serialize_path(leaf.path), (label, self.build_mapping_for_paths(field, paths))

    def _complete_paths(self, field: AlertField, path: PayloadPath) -> tuple[PayloadPath, ...]:
        """Return the path, or all paths of the proposed fingerprint if they include the path."""
        if field is not AlertField.FINGERPRINT:
            return (path,)
        identity = propose_identity(self.messages, path, self._environment)
        return identity.paths if identity and path in identity.paths else (path,)

    @property
    def _environment(self) -> PayloadPath | None:
        return self.mapping.paths.get(AlertField.ENVIRONMENT, (None,))[0]

    def build_mapping_for_paths(
        self, field: AlertField, paths: tuple[PayloadPath, ...]
    ) -> FieldMapping:
        """Return a mapping that reads a field from the first path and appends the other values.

        If the field is the host, the host also becomes part of the fingerprint, in place of the
        former host. The fingerprint does not change if the host differs between the messages, or if
        the current fingerprint differs from the proposed fingerprint.
        """
        first, *more = paths
        joins = dict(self.mapping.rules.joins)
        join = joins.pop(field.value, ValueJoin(()))
        if field is AlertField.TITLE:
            more = [path for path in join.paths if path != first]
        if more:
            joins[field.value] = replace(join, paths=tuple(more))
        sources = {**self.mapping.paths, field: self._list_sources(field, first)}
        mapping = FieldMapping(sources, replace(self.mapping.rules, joins=joins))
        if field is not AlertField.HOSTS or self.is_changed(AlertField.FINGERPRINT.value):
            return mapping
        options, name = replace(self, mapping=mapping), AlertField.FINGERPRINT
        if mapping.rules.ignored_words:
            known = dict.fromkeys((*_list_field_paths(mapping, name), first))
            return options.build_mapping_for_paths(name, tuple(known)[: MAX_JOINED_VALUES + 1])
        former = self.mapping.paths.get(AlertField.HOSTS, ())
        kept = [path for path in _list_field_paths(mapping, name) if path not in former]
        identity = propose_identity(self.messages, first, self._environment)
        if identity and (set(kept) <= set(identity.paths) or name not in mapping.paths):
            return options.build_mapping_for_paths(name, identity.paths)
        stable = {leaf.path for leaf in self.messages.stable_leaves}
        compared = tuple(dict.fromkeys((*kept, *({first} & stable))))[: MAX_JOINED_VALUES + 1]
        return options.build_mapping_for_paths(name, compared) if compared else mapping

    def _list_sources(self, field: AlertField, first: PayloadPath) -> tuple[PayloadPath, ...]:
        """Return a path, and the path of the same value in the recovery if it differs."""
        known = self.mapping.paths.get(field, ())
        if known[:1] == (first,):
            return known
        found = (leaf for leaf in self.messages.leaves if leaf.path == first)
        return next(map(self.messages.list_paths, found), (first,))


def _list_field_paths(mapping: FieldMapping, field: AlertField) -> tuple[PayloadPath, ...]:
    """Return the first path of a field, and the paths of its appended values."""
    join = mapping.rules.joins.get(field.value, ValueJoin(()))
    return (*mapping.paths.get(field, ((field.value,),))[:1], *join.paths)
