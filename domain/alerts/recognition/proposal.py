"""Proposes a mapping for messages from an unknown tool, with reasons and questions."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from domain.alerts.parsing.incoming_alert import Severity
from domain.alerts.parsing.mapping import AlertField, FieldMapping
from domain.alerts.parsing.mapping_rules import (
    MAX_JOINED_VALUES,
    MappingRules,
    Operator,
    PayloadCondition,
    ValueJoin,
    is_rule_word,
    normalize_word,
)
from domain.alerts.parsing.payload_paths import PayloadPath, find_value, format_path
from domain.alerts.parsing.severity import (
    GENERIC_SEVERITY_WORDS,
    USUAL_SEVERITY_WORDS,
    list_related_severity_words,
)
from domain.alerts.parsing.text_conversion import is_blank
from domain.alerts.parsing.times import parse_end_time
from domain.alerts.recognition.affected_objects import find_affected_object
from domain.alerts.recognition.fields import (
    FIELD_KINDS,
    SERVICE_THINGS,
    Confidence,
    FieldMatch,
    find_field_match,
    is_code,
    is_host_name,
    propose_severity_leaf,
)
from domain.alerts.recognition.identity import (
    Identity,
    find_moved_identity,
    find_specific_name,
    identify_snapshot_problem,
    is_object,
    propose_identity,
)
from domain.alerts.recognition.identity_words import ALERT_WORDS
from domain.alerts.recognition.key_splitting import parse_word_set, split_words
from domain.alerts.recognition.leaves import Leaf, list_leaves
from domain.alerts.recognition.messages import Messages
from domain.alerts.recognition.object_values import is_address
from domain.alerts.recognition.questions import Question, list_questions, propose_word_severity
from domain.alerts.recognition.resolution import Resolution, propose_resolution
from domain.alerts.recognition.severity_values import is_cvss_score
from domain.alerts.recognition.snapshots import SnapshotKeys, find_snapshot
from domain.alerts.recognition.state_words import (
    ALL_CLEAR_WORDS,
    FAILURE_WORDS,
    UNFINISHED_WORDS,
    find_state,
    find_state_in_sentence,
)
from domain.alerts.recognition.text_identity import prefer_text
from domain.alerts.recognition.title_events import (
    find_title_event,
    is_failed_run,
    names_problem,
)


@dataclass(frozen=True)
class ProposalPart:
    """The source of a field or of the rule that resolves alerts, with its confidence and reason."""

    #: Field of the alert, or None for the rule that resolves alerts.
    field: AlertField | None
    source: str
    confidence: Confidence
    reason: str


@dataclass(frozen=True, kw_only=True)
class GuessedMapping:
    """A mapping that was guessed from the messages of an alert, with reasons and questions."""

    mapping: FieldMapping
    #: Parts of the mapping, with reasons. Empty for a known tool.
    findings: tuple[ProposalPart, ...] = ()
    #: Questions about facts that the messages do not contain.
    questions: tuple[Question, ...] = ()


#: Minimum number of fields that a message in the product's format contains under their own names.
_MIN_OWN_FIELDS = 4
#: Maximum number of words in a title that is only a state.
_MAX_STATE_WORDS = 2
#: Maximum number of words in a title that may be only the name of a check.
_MAX_NAME_WORDS = 3
#: Maximum time between the start of an alert and the latest time in its first message.
_MAX_START_AGE = timedelta(days=7)
#: Beginning of a link in a chat message, whose markup is not a good title.
_CHAT_LINK = re.compile(r"<https?://")
_RUN_END_WORDS = {"finished", "completed", "ended"}


def guess_mapping(messages: Messages) -> GuessedMapping:
    """Propose a mapping for messages, based on their keys and on the kinds of their values.

    A top-level value whose key is the name of its field needs no path.
    """
    found, title_join = _complete_title(messages, _add_title(_find_fields(messages)))
    snapshot = find_snapshot(messages.firing)
    title = found.get(AlertField.TITLE)
    identity = prefer_text(
        _preserve_low_confidence(_propose_identity(messages, found, snapshot), messages, found),
        messages,
        title.leaf.path if title else None,
    )
    resolution = _propose_resolution(messages, found, identity, snapshot)
    identity = _put_items_first(identity, resolution) if identity and not snapshot else identity
    paths = _list_paths(messages, found, identity)
    if snapshot is not None:
        paths = {field: snapshot.add_removed_problem_path(given) for field, given in paths.items()}
    joins = {AlertField.TITLE.value: title_join} if title_join.paths else {}
    if identity is not None and identity.paths[1:]:
        joins[AlertField.FINGERPRINT.value] = ValueJoin(identity.paths[1:])
    severity = found.get(AlertField.SEVERITY)
    is_unsure = resolution is not None and resolution.confidence is Confidence.UNSURE
    rules = MappingRules(
        severity_words=_propose_severity_words(messages, severity, resolution),
        resolved_when=(resolution.rule,) if resolution else (),
        is_guess=is_unsure and messages.recovery is None,
        dropped_when=_propose_drop_rules(messages, resolution),
        joins=joins,
        ignored_words=identity.ignored_words if identity else (),
    )
    mapping = FieldMapping(paths, rules)
    shown = mapping.read_fields(messages.firing).get(AlertField.TITLE.value)
    return GuessedMapping(
        mapping=mapping,
        findings=tuple(_list_proposal_parts(found, identity, resolution, mapping)),
        questions=(
            *list_questions(messages, found, identity, resolution, shown),
            *([Question(text=snapshot.question)] if snapshot else []),
        ),
    )


def _list_paths(
    messages: Messages, found: Mapping[AlertField, FieldMatch], identity: Identity | None
) -> dict[AlertField, tuple[PayloadPath, ...]]:
    """Return the paths of each field: the path of its value, and its path in the recovery."""
    paths = {
        field: messages.list_paths(each.leaf, _get_text_path(field, each.leaf))
        for field, each in found.items()
    }
    if identity is not None:
        moved = (identity.moved,) if identity.moved else ()
        paths[AlertField.FINGERPRINT] = (identity.paths[0], *moved)
    return {field: given for field, given in paths.items() if given != ((field.value,),)}


def _get_text_path(field: AlertField, leaf: Leaf) -> PayloadPath:
    """Return the path of a value, or of an array's first item if the field is a single string."""
    is_array = isinstance(leaf.value, list) and field is not AlertField.HOSTS
    return (*leaf.path, 0) if is_array else leaf.path


def _propose_identity(
    messages: Messages, fields: Mapping[AlertField, FieldMatch], snapshot: SnapshotKeys | None
) -> Identity | None:
    """Return the values that identify the alert, or None if none were found.

    If no such value is the same in the recovery, the recovery is ignored, so that repeats still
    belong to the same alert.
    """
    if snapshot and (item := identify_snapshot_problem(messages, snapshot)):
        return item
    affected = next((each for each in fields.values() if each.is_affected), None)
    chosen = (fields.get(AlertField.HOSTS) or affected, fields.get(AlertField.ENVIRONMENT))
    joined = [each.leaf.path if each else None for each in chosen]
    found = propose_identity(messages, *joined)
    title = fields.get(AlertField.TITLE)
    if found and found.may_merge_hosts and title and _is_shared_name(title.leaf, messages):
        # The name may be the name of the rule, so hosts may still share an alert.
        paths = dict.fromkeys((*found.paths, title.leaf.path))
        found = replace(found, paths=tuple(paths)[: MAX_JOINED_VALUES + 1])
    if messages.recovery is not None and (found is None or found.confidence is Confidence.UNSURE):
        known = propose_identity(messages.without_recovery, *joined)
        moved = known and find_moved_identity(messages, known)
        return found if found and not (moved and moved.moved) else moved
    return found


def _put_items_first(found: Identity, resolution: Resolution | None) -> Identity:
    """Return the identity with the values of the items first if each item has its own state.

    Then each item of an array of alerts or events becomes an alert.
    """
    path = resolution.rule.path if resolution else ()
    end = path.index(0) if 0 in path else 0
    if not end or (ALERT_WORDS | {"event"}).isdisjoint(split_words(str(path[end - 1]))):
        return found
    given = [each for each in found.paths if 0 not in each[end + 1 :]]
    items = [each for each in given if each[: end + 1] == path[: end + 1]]
    return replace(found, paths=tuple(dict.fromkeys((*items, *found.paths))))


def _preserve_low_confidence(
    identity: Identity | None, messages: Messages, fields: Mapping[AlertField, FieldMatch]
) -> Identity | None:
    """Return the identity, with low confidence if its confidence is low without the repeat.

    A repeat cannot show whether two problems share the values.
    """
    if identity is None or messages.repeat is None or messages.recovery is not None:
        return identity
    first = _propose_identity(Messages(firing=messages.firing), fields, None)
    is_doubtful = first and first.paths == identity.paths and first.confidence is Confidence.UNSURE
    return replace(identity, confidence=Confidence.UNSURE) if is_doubtful else identity


def _is_shared_name(title: Leaf, messages: Messages) -> bool:
    """Return whether a title is a name, such as `stackName`, that all messages share."""
    return title.own_words[-1:] == ("name",) and title in messages.stable_leaves


def _propose_drop_rules(
    messages: Messages, resolution: Resolution | None
) -> tuple[PayloadCondition, ...]:
    """Return a rule that drops messages about unfinished runs, if the alert is a failed run."""
    if resolution is None or resolution.rule.operator is not Operator.IS:
        return ()
    path, words = resolution.rule.path, resolution.rule.words
    value = normalize_word(find_value(messages.firing, path))
    is_run = value in FAILURE_WORDS and not set(words) & set(UNFINISHED_WORDS)
    return (PayloadCondition(path, Operator.IS, UNFINISHED_WORDS),) if is_run else ()


def _needs_host(title: FieldMatch, host: FieldMatch) -> bool:
    """Return whether a title is only the name of a check or an event, without the host."""
    if not host.leaf.text:
        return False
    words = title.leaf.text.split()
    is_name = len(words) <= _MAX_NAME_WORDS and not find_state_in_sentence(title.leaf.text)
    name, object_name = title.leaf.text.casefold(), host.leaf.text.casefold()
    return is_name and object_name not in name and not (object_name.endswith(name))


#: Kinds of objects that are services although their name is the title of the alert.
_TITLED_SERVICES = SERVICE_THINGS | parse_word_set("app plan pipeline workflow")
#: Words in keys for the parts of a host that are checked, and words for their names.
_CHECKED_WORDS = parse_word_set("service check component module subsystem")
_NAMING_WORDS = parse_word_set("name label description desc")
#: Fields whose values do not name affected objects.
_LINK_FIELDS = (AlertField.RUNBOOK, AlertField.SOURCE_URL)


def _find_fields(messages: Messages) -> dict[AlertField, FieldMatch]:
    """Return the value that best fits each field, except for fields without a fitting value."""
    found: dict[AlertField, FieldMatch] = {}
    for field in FIELD_KINDS:
        taken = {each.leaf.path for each in found.values()}
        if field is AlertField.SEVERITY:
            best = propose_severity_leaf(messages.leaves)
        elif field is AlertField.END_TIME:
            best = _find_end(messages, taken)
        elif field is AlertField.TITLE:
            best = _find_title(messages, taken)
        elif field is AlertField.START_TIME:
            best = _find_end_of_run(messages) or _find_start(messages.leaves, taken)
        else:
            best = find_field_match(field, messages.leaves, taken)
        if best is not None:
            found[field] = best
    if AlertField.HOSTS not in found:
        found.update(_find_objects(messages, found))
    is_complete = AlertField.HOSTS not in found or AlertField.SERVICE in found
    return found if is_complete else {**found, **dict(_find_service(messages, found))}


def _add_title(found: Mapping[AlertField, FieldMatch]) -> Mapping[AlertField, FieldMatch]:
    """Use the name of the service or job as the title if no other value describes the problem."""
    service = found.get(AlertField.SERVICE)
    if AlertField.TITLE in found or service is None:
        return found
    return {**found, AlertField.TITLE: replace(service, confidence=Confidence.UNSURE)}


def _complete_title(
    messages: Messages, found: Mapping[AlertField, FieldMatch]
) -> tuple[Mapping[AlertField, FieldMatch], ValueJoin]:
    """Return the fields, and the values to append to a title that is only a name.

    The host is appended to the name of a check, and the event to the name of an object. A text
    about the event that contains the name replaces the title.
    """
    title, host = found.get(AlertField.TITLE), found.get(AlertField.HOSTS)
    if title is None:
        return found, ValueJoin(())
    service = found.get(AlertField.SERVICE)
    is_word = " " not in title.leaf.text or _is_unclear_state(title.leaf)
    where = host or (service if is_word else None)
    named = find_specific_name(title.leaf, messages.leaves)
    named = named or (where.leaf if where and _needs_host(title, where) else None)
    event = find_title_event(messages, title.leaf, [each.leaf for each in (host, service) if each])
    is_object_name = is_object(title.leaf) or (
        is_host_name(title.leaf) and any(map(str.isdigit, title.leaf.text))
    )
    if event and named and not (named.is_link or is_address(named)):
        if is_failed_run(event):
            return found, ValueJoin((named.path, event.path))
        if not is_object_name:
            return found, ValueJoin((named.path,))
    if event and title.leaf.text.casefold() in event.text.casefold():
        reason = f"{format_path(event.path)} describes the problem"
        title = FieldMatch(leaf=event, confidence=Confidence.UNSURE, reason=reason)
        return {**found, AlertField.TITLE: title}, ValueJoin(())
    appended = event or named
    return found, ValueJoin((appended.path,) if appended else ())


def _is_unclear_state(leaf: Leaf) -> bool:
    """Return whether a title is only a state, such as `Not Responding`."""
    words = leaf.text.split()
    is_state = names_problem(leaf) or words[:1] in (["Not"], ["No"])
    is_name = leaf.own_words[-1:] == ("name",) and "state" not in leaf.own_words
    return is_state and len(words) <= _MAX_STATE_WORDS and not is_name


def _find_service(
    messages: Messages, found: Mapping[AlertField, FieldMatch]
) -> Iterator[tuple[AlertField, FieldMatch]]:
    """Yield the service, check or component on the affected host. Its name can be the title."""
    title = found.get(AlertField.TITLE)
    taken = {each.leaf.path: field for field, each in found.items()}
    for leaf in [*([title.leaf] if title else ()), *messages.leaves]:
        is_free = taken.get(leaf.path, AlertField.TITLE) is AlertField.TITLE
        if is_free and _names_service(leaf, found[AlertField.HOSTS].leaf):
            reason = f"{format_path(leaf.path)} names what is checked on the host"
            match = FieldMatch(leaf=leaf, confidence=Confidence.LIKELY, reason=reason)
            yield AlertField.SERVICE, match
            return


def _names_service(leaf: Leaf, host: Leaf) -> bool:
    """Return whether a value is the name of a service, a check or a component, and not of a host.

    Links, generated names, states and sentences are not names.
    """
    is_key = not _CHECKED_WORDS.isdisjoint(leaf.own_words[-1:]) or not (
        _NAMING_WORDS.isdisjoint(leaf.own_words[-1:])
        or _CHECKED_WORDS.isdisjoint(leaf.words[-2:-1])
    )
    is_other = leaf.is_link or leaf.is_random or leaf.is_time or leaf.describes_actor_or_past
    is_other |= leaf.belongs_to_run_part or leaf.is_generic or leaf.is_resource_path
    is_name = leaf.is_word and len(leaf.text.split()) <= _MAX_NAME_WORDS
    is_same = leaf.text.casefold() in normalize_word(host.value)
    return is_key and is_name and not (is_other or is_same or find_state(leaf.value))


def _find_objects(
    messages: Messages, found: Mapping[AlertField, FieldMatch]
) -> Iterator[tuple[AlertField, FieldMatch]]:
    """Yield the affected object of a message without a host, or else a service in its title."""
    texts = {each.leaf.text for field, each in found.items() if field not in _LINK_FIELDS} - {""}
    named = [leaf for leaf in messages.leaves if leaf.text not in texts]
    title = found.get(AlertField.TITLE)
    if affected := find_affected_object(named, {each.leaf.path for each in found.values()}):
        is_service = affected.leaf.object_word in SERVICE_THINGS
        yield AlertField.SERVICE if is_service else AlertField.HOSTS, affected
    elif AlertField.SERVICE not in found and title and title.leaf.object_word in _TITLED_SERVICES:
        reason = "the title names it, and no other value does"
        yield AlertField.SERVICE, replace(title, confidence=Confidence.LIKELY, reason=reason)


def _propose_resolution(
    messages: Messages,
    found: Mapping[AlertField, FieldMatch],
    identity: Identity | None,
    snapshot: SnapshotKeys | None,
) -> Resolution | None:
    """Return the rule for recoveries, or else the severity words that mean no problem.

    A sentence is only used if other values identify the alert, since each recovery would otherwise
    resolve all alerts. An end time that only the recovery contains is preferred to a sentence.
    """
    if snapshot and identity and identity.paths[0][0] == snapshot.added:
        item = snapshot.add_removed_problem_path(identity.paths[:1])[-1]
        return Resolution(
            rule=PayloadCondition(item, Operator.IS_MISSING, ("no",)),
            confidence=Confidence.LIKELY,
            reason=f"{snapshot.removed} lists problems that are over",
        )
    resolution = propose_resolution(messages)
    if resolution is not None:
        is_sentence = " " in resolution.rule.words[0] or resolution.rule.operator in {
            Operator.CONTAINS_WORD,
            Operator.IS_NOT,
            Operator.IS_MISSING,
        }
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


def _has_sure_end(found: Mapping[AlertField, FieldMatch]) -> bool:
    end = found.get(AlertField.END_TIME)
    return end is not None and end.confidence is Confidence.SURE


def _is_own_format(found: Mapping[AlertField, FieldMatch]) -> bool:
    """Return whether a message is in Gatebell's format, where an end time resolves the alert."""
    own = [field for field, each in found.items() if each.leaf.path == (field.value,)]
    return len(own) >= _MIN_OWN_FIELDS


def _find_end_of_run(messages: Messages) -> FieldMatch | None:
    """Return the time at which a failed run ended, or None.

    This time is the start of the alert, since the problem did not exist before the run ended.
    """
    leaves = [leaf for leaf in messages.leaves if not leaf.describes_actor_or_past]
    runs = {leaf.path[:-1] for leaf in leaves if leaf.text.casefold() in FAILURE_WORDS}
    ends = (leaf for leaf in leaves if leaf.is_time and set(leaf.own_words) & _RUN_END_WORDS)
    end = next(
        (leaf for leaf in ends if runs and (leaf.is_top_level or leaf.path[:-1] in runs)), None
    )
    if end is None:
        return None
    reason = f"{format_path(end.path)} is the end of the failed run"
    return FieldMatch(leaf=end, confidence=Confidence.LIKELY, reason=reason)


def _find_start(leaves: Sequence[Leaf], taken: Collection[PayloadPath]) -> FieldMatch | None:
    """Return the best value for the start that is close to the latest time in the message.

    A much earlier time is probably the creation of an object. Messages in documentation are old, so
    times are not compared with the current time.
    """
    times = {leaf: time for leaf in leaves if (time := leaf.past_time)}
    # Some tools send an expected end.
    latest = max((times[leaf] for leaf in times if "end" not in leaf.words), default=None)
    near = (leaf for leaf in times if latest is None or latest - times[leaf] <= _MAX_START_AGE)
    return find_field_match(AlertField.START_TIME, near, taken)


def _find_title(messages: Messages, taken: Collection[PayloadPath]) -> FieldMatch | None:
    """Return the value for the title, preferably a value that is the same in the repeat."""
    found = find_field_match(AlertField.TITLE, _drop_commit_messages(messages.leaves), taken)
    known = _drop_commit_messages(messages.without_recovery.stable_leaves)
    is_rival = found and any(_is_rival_title(leaf, found.leaf) for leaf in messages.leaves)
    if found and (is_rival or _CHAT_LINK.search(found.leaf.text)):
        found = replace(found, confidence=Confidence.UNSURE)
    if found is None or found.leaf in known:
        return found
    stable = find_field_match(AlertField.TITLE, known, taken)
    is_other = stable is None or stable.confidence is Confidence.UNSURE or is_code(stable.leaf)
    return found if is_other else stable


def _is_rival_title(leaf: Leaf, title: Leaf) -> bool:
    """Return whether another nested value has the same key as the title and another text."""
    is_same_key = leaf.own_words == title.own_words and leaf.depth == title.depth > 1
    return is_same_key and leaf.is_word and leaf.text != title.text


def _drop_commit_messages(leaves: Sequence[Leaf]) -> list[Leaf]:
    """Return the values except commit messages, which do not describe the problem."""
    commits = {
        leaf.path[:-1]
        for leaf in leaves
        if "committer" in leaf.own_words
        or ("commit" in leaf.own_words and leaf.own_words[-1] in {"id", "hash", "sha"})
    }
    return [
        leaf for leaf in leaves if leaf.own_words != ("message",) or leaf.path[:-1] not in commits
    ]


def _find_end(messages: Messages, taken: Collection[PayloadPath]) -> FieldMatch | None:
    """Return the value for the end time. The first message has no end time."""
    if messages.recovery is None:
        found = find_field_match(AlertField.END_TIME, messages.leaves, taken)
        end = found and parse_end_time(found.leaf.value, name=AlertField.END_TIME)
        return found if end and end.time is None and end.warning is None else None
    given = [
        leaf
        for leaf in list_leaves(messages.recovery)
        if leaf.is_time
        and parse_end_time(leaf.value, name="").time
        and is_blank(find_value(messages.firing, leaf.path) or None)
    ]
    found = find_field_match(AlertField.END_TIME, given)
    return found and FieldMatch(
        leaf=found.leaf, confidence=Confidence.SURE, reason="only the recovery has this time"
    )


def _propose_severity_words(
    messages: Messages, severity: FieldMatch | None, resolution: Resolution | None
) -> dict[str, Severity]:
    """Return the severities of the words in the messages, and of words that tools usually send.

    Words from a recovery are never critical. A CVSS score needs no words.
    """
    if severity is not None and is_cvss_score(severity.leaf):
        return {}
    path: PayloadPath = severity.leaf.path if severity else (AlertField.SEVERITY.value,)
    words: dict[str, Severity] = {}
    for payload in (messages.firing, *messages.other_messages):
        value = find_value(payload, path)
        if is_blank(value) or isinstance(value, list | dict):
            continue
        word = normalize_word(value)
        if is_rule_word(word) and not (isinstance(value, str) and word in GENERIC_SEVERITY_WORDS):
            is_recovery = payload is messages.recovery and word not in words
            words[word] = Severity.INFO if is_recovery else propose_word_severity(word)
    family = list_related_severity_words(find_value(messages.firing, path))
    if words or (resolution and resolution.rule.path == path):
        words = {**family, **dict.fromkeys(ALL_CLEAR_WORDS, Severity.INFO), **words}
    is_own = path == (AlertField.SEVERITY.value,) and not words
    if severity is not None and severity.leaf.is_word and not is_own:
        words = {**USUAL_SEVERITY_WORDS, **words}
    return words


def _list_proposal_parts(
    found: Mapping[AlertField, FieldMatch],
    identity: Identity | None,
    resolution: Resolution | None,
    mapping: FieldMapping,
) -> Iterator[ProposalPart]:
    parts = {**found, AlertField.FINGERPRINT: identity}
    for field, source in mapping.sources.items():
        if part := parts.get(field):
            yield ProposalPart(field, source, part.confidence, part.reason)
    if resolution is not None:
        yield ProposalPart(None, resolution.rule.phrase, resolution.confidence, resolution.reason)
