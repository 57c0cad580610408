"""Proposes a mapping for messages from an unknown tool, with reasons and questions."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from domain.alerts.reading.incoming import Severity
from domain.alerts.reading.mapping import AlertField, FieldMapping
from domain.alerts.reading.mapping_rules import (
    MAX_JOINED_VALUES,
    MappingRules,
    Operator,
    PayloadCondition,
    ValueJoin,
    is_rule_word,
    normalize_word,
)
from domain.alerts.reading.paths import PayloadPath, find_value, format_path
from domain.alerts.reading.severity import (
    GENERIC_SEVERITY_WORDS,
    USUAL_SEVERITY_WORDS,
    list_severity_family,
    propose_severity,
)
from domain.alerts.reading.text import format_excerpt, is_blank
from domain.alerts.reading.times import parse_end_time
from domain.alerts.recognition.fields import (
    FIELD_KINDS,
    SERVICE_THINGS,
    Confidence,
    FoundLeaf,
    find_affected,
    find_field,
    is_code,
    is_host_name,
    propose_severity_leaf,
)
from domain.alerts.recognition.identity import (
    Identity,
    find_moved_identity,
    find_specific_name,
    identify_item,
    is_object,
    list_subject_leaves,
    propose_identity,
)
from domain.alerts.recognition.key_words import parse_word_set
from domain.alerts.recognition.leaves import Leaf, list_leaves
from domain.alerts.recognition.messages import Messages
from domain.alerts.recognition.resolution import Resolution, propose_resolution
from domain.alerts.recognition.snapshots import Snapshot, find_snapshot
from domain.alerts.recognition.states import (
    ALL_CLEAR_WORDS,
    FAILURE_WORDS,
    RECOVERY_WORDS,
    UNFINISHED_WORDS,
    find_state,
    find_state_in_sentence,
)
from domain.core.word_lists import join_words


@dataclass(frozen=True)
class Finding:
    """A part of a proposal, with its confidence and reason."""

    #: Field of the alert, or None for the rule that resolves alerts.
    field: AlertField | None
    source: str
    confidence: Confidence
    reason: str


#: Name of the questions about the rule that resolves alerts.
RULE_QUESTION = "resolved_when"
#: Names of the questions with known answers.
QUESTION_NAMES = frozenset({"severity", "fingerprint", "title", "hosts", RULE_QUESTION})


@dataclass(frozen=True, kw_only=True)
class Question:
    """A question about a fact that the messages do not contain."""

    #: Name of the field that the answer changes, RULE_QUESTION, or None if there is no answer.
    name: str | None = None
    text: str
    #: True if the answer “yes” keeps the proposal.
    is_confirmation: bool = False
    #: Values that may fit the field better, best first.
    candidates: tuple[Leaf, ...] = ()


@dataclass(frozen=True, kw_only=True)
class GuessedMapping:
    """A mapping for the messages of an alert."""

    mapping: FieldMapping
    #: Parts of the mapping, with reasons. Empty for a known tool.
    findings: tuple[Finding, ...] = ()
    #: Questions about facts that the messages do not contain.
    questions: tuple[Question, ...] = ()


#: Minimum number of fields that a message in the product's format contains under their own names.
_MIN_OWN_FIELDS = 4
#: Maximum number of words in a title that may be only the name of a check.
_MAX_NAME_WORDS = 3
#: Words for objects whose name identifies what is affected.
_CHECKED_THINGS = parse_word_set(
    "check monitor test job pipeline workflow scenario sensor site project flow dag task component"
)
#: Maximum number of values that are proposed for a field in a question.
_MAX_CANDIDATES = 4
#: Maximum number of words of a rule that a question names.
_MAX_SHOWN_WORDS = 4
#: Words whose severity depends on the other words in the tool's scale.
_MIDDLE_SEVERITIES = {"error", "err", "warning", "warn"}
_RUN_END_WORDS = {"finished", "completed", "ended"}
_SECRET_WORDS = {"secret", "password", "passphrase"}


def guess_mapping(messages: Messages) -> GuessedMapping:
    """Propose a mapping for messages, based on their keys and on the kinds of their values.

    A top-level value whose key is the name of its field needs no path.
    """
    found = dict(_find_fields(messages))
    host = found.get(AlertField.HOSTS)
    snapshot = find_snapshot(messages.firing)
    identity = _propose_identity(messages, found, snapshot)
    resolution = _propose_resolution(messages, found, identity, snapshot)
    paths: dict[AlertField, tuple[PayloadPath, ...]] = {
        field: (each.leaf.path,)
        for field, each in found.items()
        if each.leaf.path != (field.value,)
    }
    joins = {}
    if identity is not None:
        first, *more = identity.paths
        if identity.moved or first != (AlertField.FINGERPRINT.value,):
            paths[AlertField.FINGERPRINT] = (first, *([identity.moved] if identity.moved else ()))
        if more:
            joins[AlertField.FINGERPRINT.value] = ValueJoin(tuple(more))
    if snapshot is not None:
        paths = {field: snapshot.add_removed(given) for field, given in paths.items()}
    title = found.get(AlertField.TITLE)
    is_word = title is not None and " " not in title.leaf.text
    where = host or (found.get(AlertField.SERVICE) if is_word else None)
    added = where.leaf if where is not None and _needs_host(title, where) else None
    added = find_specific_name(title.leaf if title else None, messages.leaves) or added
    if added is not None:
        joins[AlertField.TITLE.value] = ValueJoin((added.path,))
    severity = found.get(AlertField.SEVERITY)
    is_unsure = resolution is not None and resolution.confidence is Confidence.UNSURE
    rules = MappingRules(
        severity_words=_propose_severity_words(messages, severity, resolution),
        resolved_when=(resolution.rule,) if resolution else (),
        is_guess=is_unsure and messages.recovery is None,
        dropped_when=_propose_drops(messages, resolution),
        joins=joins,
    )
    mapping = FieldMapping(paths, rules)
    shown = mapping.read_fields(messages.firing).get(AlertField.TITLE.value)
    return GuessedMapping(
        mapping=mapping,
        findings=tuple(_list_findings(found, identity, resolution, mapping)),
        questions=(
            *_list_questions(messages, found, identity, resolution, shown),
            *([Question(text=snapshot.question)] if snapshot else []),
        ),
    )


def _propose_identity(
    messages: Messages, fields: Mapping[AlertField, FoundLeaf], snapshot: Snapshot | None
) -> Identity | None:
    """Return the identity of the alert.

    If the identity of the recovery differs, repeats still belong to the same alert.
    """
    if snapshot and (item := identify_item(messages, snapshot)):
        return item
    affected = next((each for each in fields.values() if each.is_affected), None)
    chosen = (fields.get(AlertField.HOSTS) or affected, fields.get(AlertField.ENVIRONMENT))
    joined = [each.leaf.path if each else None for each in chosen]
    found = propose_identity(messages, *joined)
    title = fields.get(AlertField.TITLE)
    if found and found.may_merge_hosts and title and _is_name(title.leaf, messages):
        # The name may be the name of the rule, so that hosts may still share an alert.
        paths = dict.fromkeys((*found.paths, title.leaf.path))
        found = replace(found, paths=tuple(paths)[: MAX_JOINED_VALUES + 1])
    if found is None and messages.recovery is not None:
        found = propose_identity(messages.without_recovery, *joined)
        return found and find_moved_identity(messages, found)
    return found


def _is_name(title: Leaf, messages: Messages) -> bool:
    """Return whether a title is a name, such as `stackName`, that all messages share."""
    return title.own_words[-1:] == ("name",) and title in messages.stable_leaves


def _propose_drops(
    messages: Messages, resolution: Resolution | None
) -> tuple[PayloadCondition, ...]:
    """Return a rule that drops messages about unfinished runs."""
    if resolution is None or resolution.rule.operator is not Operator.IS:
        return ()
    path, words = resolution.rule.path, resolution.rule.words
    value = normalize_word(find_value(messages.firing, path))
    is_run = value in FAILURE_WORDS and not set(words) & set(UNFINISHED_WORDS)
    return (PayloadCondition(path, Operator.IS, UNFINISHED_WORDS),) if is_run else ()


def _needs_host(title: FoundLeaf | None, host: FoundLeaf) -> bool:
    """Return whether a title is only the name of a check or an event, without the host."""
    if title is None or not host.leaf.text:
        return False
    words = title.leaf.text.split()
    is_name = len(words) <= _MAX_NAME_WORDS and not find_state_in_sentence(title.leaf.text)
    return is_name and host.leaf.text.casefold() not in title.leaf.text.casefold()


def _find_fields(messages: Messages) -> Iterator[tuple[AlertField, FoundLeaf]]:
    taken: set[PayloadPath] = set()
    texts: set[str] = set()
    has_host = False
    for field in FIELD_KINDS:
        if field is AlertField.SEVERITY:
            found = propose_severity_leaf(messages.leaves)
        elif field is AlertField.END_TIME:
            found = _find_end(messages, taken)
        elif field is AlertField.TITLE:
            found = _find_title(messages, taken)
        elif field is AlertField.START_TIME:
            found = _find_end_of_run(messages) or find_field(field, messages.leaves, taken)
        else:
            found = find_field(field, messages.leaves, taken)
        if found is not None:
            taken.add(found.leaf.path)
            texts |= {found.leaf.text} - {""} if field is not AlertField.RUNBOOK else set()
            has_host |= field is AlertField.HOSTS
            yield field, found
    named = [leaf for leaf in messages.leaves if leaf.text not in texts]
    if not has_host and (found := find_affected(named, taken)):
        is_service = found.leaf.thing in SERVICE_THINGS
        yield AlertField.SERVICE if is_service else AlertField.HOSTS, found


def _propose_resolution(
    messages: Messages,
    found: Mapping[AlertField, FoundLeaf],
    identity: Identity | None,
    snapshot: Snapshot | None,
) -> Resolution | None:
    """Return the rule for recoveries, or else the severity words that mean no problem.

    A sentence is only used if other values identify the alert, since each recovery would otherwise
    resolve all alerts. An end time that only the recovery contains is preferred to a sentence.
    """
    if snapshot and identity and identity.paths[0][0] == snapshot.added:
        item = snapshot.add_removed(identity.paths[:1])[-1]
        return Resolution(
            rule=PayloadCondition(item, Operator.IS_MISSING, ("no",)),
            confidence=Confidence.LIKELY,
            reason=f"{snapshot.removed} lists problems that are over",
        )
    resolution = propose_resolution(messages)
    if resolution is not None:
        is_sentence = resolution.rule.operator in {Operator.CONTAINS, Operator.IS_NOT}
        has_other = identity is None or identity.is_partial or _has_sure_end(found)
        return None if is_sentence and has_other else resolution
    severity = found.get(AlertField.SEVERITY)
    has_end = AlertField.END_TIME in found or _is_own_format(found)
    if severity is None or not severity.leaf.is_word or has_end or messages.recovery is not None:
        return None
    path = severity.leaf.path
    return Resolution(
        rule=PayloadCondition(path, Operator.IS, ALL_CLEAR_WORDS),
        confidence=Confidence.UNSURE,
        reason=f"{format_path(path)} may also report that the problem is over",
    )


def _has_sure_end(found: Mapping[AlertField, FoundLeaf]) -> bool:
    end = found.get(AlertField.END_TIME)
    return end is not None and end.confidence is Confidence.SURE


def _is_own_format(found: Mapping[AlertField, FoundLeaf]) -> bool:
    """Return whether a message is in the product's format, where an end time resolves the alert."""
    own = [field for field, each in found.items() if each.leaf.path == (field.value,)]
    return len(own) >= _MIN_OWN_FIELDS


def _find_end_of_run(messages: Messages) -> FoundLeaf | None:
    """Return the time at which a failed run ended, since the problem did not exist before."""
    leaves = [leaf for leaf in messages.leaves if not leaf.is_about_other]
    runs = {leaf.path[:-1] for leaf in leaves if leaf.text.casefold() in FAILURE_WORDS}
    ends = (leaf for leaf in leaves if leaf.is_time and set(leaf.own_words) & _RUN_END_WORDS)
    end = next((leaf for leaf in ends if runs and (leaf.is_top or leaf.path[:-1] in runs)), None)
    if end is None:
        return None
    reason = f"{format_path(end.path)} is the end of the failed run"
    return FoundLeaf(leaf=end, confidence=Confidence.LIKELY, reason=reason)


def _find_title(messages: Messages, taken: Collection[PayloadPath]) -> FoundLeaf | None:
    """Return the value for the title, preferably a value that is the same in the repeat."""
    found = find_field(AlertField.TITLE, _drop_commit_messages(messages.leaves), taken)
    known = _drop_commit_messages(messages.without_recovery.stable_leaves)
    if found is None or found.leaf in known:
        return found
    stable = find_field(AlertField.TITLE, known, taken)
    is_other = stable is None or stable.confidence is Confidence.UNSURE or is_code(stable.leaf)
    return found if is_other else stable


def _drop_commit_messages(leaves: Sequence[Leaf]) -> list[Leaf]:
    """Return the values without messages of commits, which do not describe the problem."""
    commits = {
        leaf.path[:-1]
        for leaf in leaves
        if leaf.own_words == ("commit", "id") or "committer" in leaf.own_words
    }
    return [
        leaf for leaf in leaves if leaf.own_words != ("message",) or leaf.path[:-1] not in commits
    ]


def _find_end(messages: Messages, taken: Collection[PayloadPath]) -> FoundLeaf | None:
    """Return the value for the end time. The first message has no end time."""
    if messages.recovery is None:
        found = find_field(AlertField.END_TIME, messages.leaves, taken)
        end = found and parse_end_time(found.leaf.value, name=AlertField.END_TIME)
        return found if end and end.time is None and end.warning is None else None
    given = [
        leaf
        for leaf in list_leaves(messages.recovery)
        if leaf.is_time
        and parse_end_time(leaf.value, name="").time
        and is_blank(find_value(messages.firing, leaf.path) or None)
    ]
    found = find_field(AlertField.END_TIME, given)
    return found and FoundLeaf(
        leaf=found.leaf, confidence=Confidence.SURE, reason="only the recovery has this time"
    )


def _propose_severity_words(
    messages: Messages, severity: FoundLeaf | None, resolution: Resolution | None
) -> dict[str, Severity]:
    """Return the severities of the words in the messages, and of words that tools usually send.

    Words from a recovery are never critical.
    """
    path: PayloadPath = severity.leaf.path if severity else (AlertField.SEVERITY.value,)
    words: dict[str, Severity] = {}
    for payload in (messages.firing, *messages.others):
        value = find_value(payload, path)
        if is_blank(value) or isinstance(value, list | dict):
            continue
        word = normalize_word(value)
        if is_rule_word(word) and not (isinstance(value, str) and word in GENERIC_SEVERITY_WORDS):
            is_recovery = payload is messages.recovery and word not in words
            words[word] = Severity.INFO if is_recovery else propose_word_severity(word)
    family = list_severity_family(find_value(messages.firing, path))
    if words or (resolution and resolution.rule.path == path):
        words = {**family, **dict.fromkeys(ALL_CLEAR_WORDS, Severity.INFO), **words}
    is_own = path == (AlertField.SEVERITY.value,) and not words
    if severity is not None and severity.leaf.is_word and not is_own:
        words = {**USUAL_SEVERITY_WORDS, **words}
    return words


def propose_word_severity(word: str) -> Severity:
    """Return the probable severity for a sender's term; recovery words have severity info."""
    named = find_state(word)
    is_over = word in RECOVERY_WORDS or (named is not None and named.word in RECOVERY_WORDS)
    return Severity.INFO if is_over else propose_severity(word)


def _list_findings(
    found: Mapping[AlertField, FoundLeaf],
    identity: Identity | None,
    resolution: Resolution | None,
    mapping: FieldMapping,
) -> Iterator[Finding]:
    parts = {**found, AlertField.FINGERPRINT: identity}
    for field, source in mapping.sources.items():
        if part := parts.get(field):
            yield Finding(field, source, part.confidence, part.reason)
    if resolution is not None:
        yield Finding(None, resolution.rule.sentence, resolution.confidence, resolution.reason)


def _list_questions(
    messages: Messages,
    found: Mapping[AlertField, FoundLeaf],
    identity: Identity | None,
    resolution: Resolution | None,
    shown: object,
) -> Iterator[Question]:
    """Yield the questions about a proposal.

    `shown` is the title with its joined values.
    """
    yield from _ask_about_fields(messages, found, shown)
    if resolution is None and AlertField.END_TIME not in found:
        text = (
            "No value shows whether the alert is over. Paste the message that the tool sends when "
            "the problem is over. If the tool sends none, users resolve these alerts."
            if messages.recovery is None
            else "No value of the recovery shows that the alert is over, so users have to resolve "
            "these alerts."
        )
        yield Question(name=RULE_QUESTION, text=text)
    elif resolution is not None and resolution.confidence is Confidence.UNSURE:
        text = f"Is the alert over if {_shorten_rule(resolution.rule)}?"
        if messages.recovery is None:
            text += " Paste the message about the recovery to check it."
        yield Question(name=RULE_QUESTION, text=text, is_confirmation=True)
    # Without a rule, a value under the product's own name for the end time resolves the alert.
    end = parse_end_time(messages.firing.get(AlertField.END_TIME), name="")
    if resolution is None and (end.time or end.warning):
        text = (
            "Is end_time the end of the problem? It has a value although the problem is not over, "
            "so it can resolve alerts immediately."
        )
        yield Question(name=AlertField.END_TIME, text=text)
    yield from _ask_about_identity(messages, identity, found)


def _shorten_rule(rule: PayloadCondition) -> str:
    words = rule.words[:_MAX_SHOWN_WORDS]
    more = " …" if len(rule.words) > len(words) else ""
    return f"{replace(rule, words=words).sentence}{more}"


def _ask_about_fields(
    messages: Messages, found: Mapping[AlertField, FoundLeaf], shown: object
) -> Iterator[Question]:
    title, severity = found.get(AlertField.TITLE), found.get(AlertField.SEVERITY)
    ask = partial(_ask_for_value, messages, found)
    if title is None:
        yield ask(AlertField.TITLE, "No field looks like a title.")
    elif title.confidence is Confidence.UNSURE:
        text = f"Is {format_excerpt(shown)} a good title?"
        yield ask(AlertField.TITLE, text, is_confirmation=True)
    if severity is not None and (asked := _ask_about_severity(messages, severity)):
        yield Question(name=AlertField.SEVERITY, text=asked)
    host = found.get(AlertField.HOSTS)
    is_named = title is not None and title.leaf.thing in _CHECKED_THINGS
    if host is not None and host.confidence is Confidence.UNSURE:
        text = f"Is {format_excerpt(host.leaf.value)} the affected host or object?"
        yield ask(AlertField.HOSTS, text, is_confirmation=True)
    elif host is None and AlertField.SERVICE not in found and not is_named:
        yield ask(AlertField.HOSTS, "No value is clearly the affected host or service.")
    for leaf in messages.leaves:
        own = set(leaf.own_words)
        if leaf.text and (own & _SECRET_WORDS or (own & {"private", "api"} and "key" in own)):
            text = (
                f"Is {format_path(leaf.path)} a secret? If so, remove its value before you go on."
            )
            yield Question(text=text)


def _ask_about_severity(messages: Messages, severity: FoundLeaf) -> str | None:
    """Return the question about an unsure severity word, or None."""
    path, value = severity.leaf.path, severity.leaf.value
    given = [find_value(each, path) for each in (messages.firing, *messages.others)]
    words = (normalize_word(each) for each in given if isinstance(each, str | int))
    quoted = join_words(dict.fromkeys(f"“{word}”" for word in words if is_rule_word(word)))
    if normalize_word(value).isdecimal():
        return (
            f"How severe is {quoted}? On some scales 1 is the highest number, and on others the "
            f"lowest. Other numbers of {format_path(path)} are critical until you add severity "
            "words for them."
        )
    if severity.confidence is Confidence.UNSURE:
        return f"How severe is “{value}”? Tools use different scales for {format_path(path)}."
    if (word := normalize_word(value)) in _MIDDLE_SEVERITIES:
        return (
            f"How severe is “{value}”? It opens alerts with {propose_word_severity(word)} "
            "severity. Some tools use it for more severe problems."
        )
    return None


def _ask_for_value(
    messages: Messages,
    found: Mapping[AlertField, FoundLeaf],
    field: AlertField,
    text: str,
    *,
    is_confirmation: bool = False,
) -> Question:
    """Return a question with the values that may fit a field, or else with other short texts."""
    taken = {found[each].leaf.path for each in (field, AlertField.TITLE) if each in found}
    stable = [leaf for leaf in messages.stable_leaves if leaf.path not in taken]
    stable = [leaf for leaf in stable if not leaf.is_about_other]
    leaves: list[Leaf] = []
    if field is AlertField.FINGERPRINT:
        leaves += list_subject_leaves(stable)
    else:
        for _ in range(_MAX_CANDIDATES):
            known = {*taken, *(leaf.path for leaf in leaves)}
            best = find_field(field, messages.leaves, known)
            leaves += [best.leaf] if best else []
    if field is not AlertField.TITLE:
        leaves += [leaf for leaf in stable if is_object(leaf) or is_host_name(leaf)]
    texts = (
        leaf
        for leaf in stable
        if leaf.is_word
        and not (leaf.is_time or leaf.is_link or find_state(leaf.value))
        and (field is AlertField.TITLE or len(leaf.text.split()) <= _MAX_NAME_WORDS)
    )
    return Question(
        name=field, text=text, is_confirmation=is_confirmation, candidates=tuple(leaves or texts)
    )


def _ask_about_identity(
    messages: Messages, identity: Identity | None, found: Mapping[AlertField, FoundLeaf]
) -> Iterator[Question]:
    field, is_confirmation = AlertField.FINGERPRINT, False
    paste = "" if messages.repeat else " Paste another message about the same problem."
    if identity is None:
        text = (
            "No value identifies the alert in all of its messages, so each message may open a new "
            f"alert.{paste}"
        )
    elif identity.is_partial:
        text = (
            "No value identifies the alert in all of its messages. The recovery has another "
            f"{identity.values}, so it resolves no alert."
        )
    elif identity.may_merge_hosts:
        field = AlertField.HOSTS
        text = (
            "No value names the affected host or object. If the rule watches several, they share "
            f"one alert.{paste}"
        )
    elif identity.confidence is Confidence.UNSURE:
        is_confirmation = True
        text = (
            f"Do messages with the same {identity.values} always report the same problem, and "
            "never two problems?"
        )
        if not messages.others:
            text += " Paste another message about the same problem, or its recovery, to check it."
        elif messages.repeat is None:
            text += (
                " If the tool repeats messages while a problem lasts, paste a repeat to check it."
            )
    else:
        return
    yield _ask_for_value(messages, found, field, text, is_confirmation=is_confirmation)
