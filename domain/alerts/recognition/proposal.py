"""Proposes a mapping from the messages of an unknown tool, with reasons and questions."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from domain.alerts.reading.incoming import Severity
from domain.alerts.reading.mapping import AlertField, FieldMapping
from domain.alerts.reading.mapping_rules import (
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
    propose_severity,
)
from domain.alerts.reading.text import format_excerpt, is_blank
from domain.alerts.reading.times import parse_end_time
from domain.alerts.recognition.fields import (
    FIELD_KINDS,
    NO_NAMES,
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
    AREA_WORDS,
    Identity,
    find_moved_identity,
    find_specific_name,
    identify_item,
    is_object,
    propose_identity,
)
from domain.alerts.recognition.key_words import parse_word_set
from domain.alerts.recognition.leaves import list_leaves
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


@dataclass(frozen=True, kw_only=True)
class Finding:
    """A part of a proposal, with its confidence and reason."""

    #: Field of the alert, or None for the rule that resolves alerts.
    field: AlertField | None
    source: str
    confidence: Confidence
    reason: str


@dataclass(frozen=True, kw_only=True)
class GuessedMapping:
    """A mapping for the messages of an alert."""

    mapping: FieldMapping
    #: Parts of the mapping, with reasons. Empty for a known tool.
    findings: tuple[Finding, ...] = ()
    #: Questions about facts that the messages do not contain, as sentences.
    questions: tuple[str, ...] = ()


#: Minimum number of fields under their own names in a message in the product's format.
_MIN_OWN_FIELDS = 4
#: Maximum number of words in a title that may be only the name of a check.
_MAX_NAME_WORDS = 3
_WHERE_TO_CHANGE = "under Configure after you add the integration"
#: Words of things whose name identifies what is affected.
_CHECKED_THINGS = parse_word_set(
    "check monitor test job pipeline workflow scenario sensor site project flow dag task component"
)
#: Maximum number of values that a question names.
_MAX_CANDIDATES = 3
#: Words whose severity depends on the other words of the tool's scale.
_MIDDLE_SEVERITIES = {"error", "err", "warning", "warn"}
_RUN_END_WORDS = {"finished", "completed", "ended"}
_SECRET_WORDS = {"secret", "password", "passphrase"}


def guess_mapping(messages: Messages) -> GuessedMapping:
    """Propose a mapping for messages, based on their keys and on the kinds of their values.

    A value at the top level under the name of its field needs no path.
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
    rules = MappingRules(
        severity_words=_propose_severity_words(messages, severity, resolution),
        resolved_when=(resolution.rule,) if resolution else (),
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
            *([snapshot.question] if snapshot else []),
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
    if found is None and messages.recovery is not None:
        found = propose_identity(messages.without_recovery, *joined)
        return found and find_moved_identity(messages, found)
    return found


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
    """Return the rule for recoveries, or else the words of severity scales that mean no problem.

    A sentence is only used if other values identify the alert, since each recovery would otherwise
    resolve all alerts. An end time that only the recovery has is preferred to a sentence.
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
    """Return the time at which a failed run ended. The problem did not exist before it."""
    leaves = [leaf for leaf in messages.leaves if not leaf.is_about_other]
    runs = {leaf.path[:-1] for leaf in leaves if leaf.text.casefold() in FAILURE_WORDS}
    ends = (leaf for leaf in leaves if leaf.is_time and set(leaf.own_words) & _RUN_END_WORDS)
    end = next((leaf for leaf in ends if runs and (leaf.is_top or leaf.path[:-1] in runs)), None)
    if end is None:
        return None
    reason = f"{format_path(end.path)} is the end of the failed run"
    return FoundLeaf(leaf=end, confidence=Confidence.LIKELY, reason=reason)


def _find_title(messages: Messages, taken: Collection[PayloadPath]) -> FoundLeaf | None:
    """Return the value for the title, if possible a value that is the same in the repeat."""
    found = find_field(AlertField.TITLE, messages.leaves, taken)
    known = messages.without_recovery.stable_leaves
    if found is None or found.leaf in known:
        return found
    stable = find_field(AlertField.TITLE, known, taken)
    is_other = stable is None or stable.confidence is Confidence.UNSURE or is_code(stable.leaf)
    return found if is_other else stable


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

    No word of a recovery is critical.
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
    if words or (resolution and resolution.rule.path == path):
        words = {**dict.fromkeys(ALL_CLEAR_WORDS, Severity.INFO), **words}
    is_own = path == (AlertField.SEVERITY.value,) and not words
    if severity is not None and severity.leaf.is_word and not is_own:
        words = {**USUAL_SEVERITY_WORDS, **words}
    return words


def propose_word_severity(word: str) -> Severity:
    """Return the probable severity for a sender's word. Words of recoveries are info."""
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
            yield Finding(
                field=field, source=source, confidence=part.confidence, reason=part.reason
            )
    if resolution is not None:
        yield Finding(
            field=None,
            source=resolution.rule.sentence,
            confidence=resolution.confidence,
            reason=resolution.reason,
        )


def _list_questions(
    messages: Messages,
    found: Mapping[AlertField, FoundLeaf],
    identity: Identity | None,
    resolution: Resolution | None,
    shown: object,
) -> Iterator[str]:
    """Yield the questions about a proposal. `shown` is the title with its joined values."""
    yield from _ask_about_fields(messages, found, shown)
    if resolution is not None or AlertField.END_TIME in found:
        yield from _ask_about_rule(messages, resolution)
    elif messages.recovery is None:
        yield (
            "No value shows whether the alert is over. Paste the message that the tool sends when "
            "the problem is over. If the tool sends none, users resolve these alerts."
        )
    else:
        yield (
            "No value of the recovery shows that the alert is over. Choose a rule "
            f"{_WHERE_TO_CHANGE}, or users have to resolve these alerts."
        )
    # Without a rule, a value under the product's own name ends the alert.
    end = parse_end_time(messages.firing.get(AlertField.END_TIME), name="")
    if resolution is None and (end.time or end.warning):
        yield (
            "Is end_time the end of the problem? It has a value although the problem is not over, "
            f"so it can resolve alerts immediately. Choose another end time {_WHERE_TO_CHANGE}."
        )
    yield from _ask_about_identity(messages, identity, found.get(AlertField.TITLE))


def _ask_about_fields(
    messages: Messages, found: Mapping[AlertField, FoundLeaf], shown: object
) -> Iterator[str]:
    title, severity = found.get(AlertField.TITLE), found.get(AlertField.SEVERITY)
    if title is None:
        yield f"No field looks like a title. Choose one {_WHERE_TO_CHANGE}."
    elif title.confidence is Confidence.UNSURE:
        excerpt = format_excerpt(shown)
        yield f"Is {excerpt} a good title? Otherwise, choose another one {_WHERE_TO_CHANGE}."
    if severity is not None:
        yield from _ask_about_severity(messages, severity)
    yield from _ask_about_host(messages, found)
    for leaf in messages.leaves:
        own = set(leaf.own_words)
        if leaf.text and (own & _SECRET_WORDS or (own & {"private", "api"} and "key" in own)):
            yield f"Is {format_path(leaf.path)} a secret? If so, remove its value before you go on."


def _ask_about_severity(messages: Messages, severity: FoundLeaf) -> Iterator[str]:
    path, value = severity.leaf.path, severity.leaf.value
    given = [find_value(each, path) for each in (messages.firing, *messages.others)]
    words = (normalize_word(each) for each in given if isinstance(each, str | int))
    quoted = join_words(dict.fromkeys(f"“{word}”" for word in words if is_rule_word(word)))
    if normalize_word(value).isdecimal():
        yield (
            f"How severe is {quoted}? On some scales 1 is the highest number, and on others the "
            f"lowest. Other numbers of {format_path(path)} are critical until you add a severity "
            f"for each of them {_WHERE_TO_CHANGE}."
        )
    elif severity.confidence is Confidence.UNSURE:
        yield (
            f"How severe is “{value}”? Tools use different scales for {format_path(path)}. Check "
            f"the severity words, or change them {_WHERE_TO_CHANGE}."
        )
    elif (word := normalize_word(value)) in _MIDDLE_SEVERITIES:
        yield (
            f"How severe is “{value}”? It opens alerts with {propose_word_severity(word)} "
            "severity. Some tools use it for more severe problems. Check the severity words, or "
            f"change them {_WHERE_TO_CHANGE}."
        )


def _list_candidates(messages: Messages, title: FoundLeaf | None) -> str:
    """Return the values that may name the host as part of a sentence, or an empty text."""
    others = {*NO_NAMES, title.leaf.text.casefold() if title else "", ""}
    leaves = [leaf for leaf in messages.stable_leaves if leaf.text.casefold() not in others]
    leaves = [leaf for leaf in leaves if not (leaf.is_about_other or leaf.thing in AREA_WORDS)]
    hosts = [leaf for leaf in leaves if is_host_name(leaf)]
    found = {leaf.text: leaf for leaf in [*filter(is_object, leaves), *hosts]}
    names = [f"{format_path(leaf.path)} ({format_excerpt(leaf.text)})" for leaf in found.values()]
    return f"for example {join_words(names[:_MAX_CANDIDATES], 'or')}, " if names else ""


def _ask_about_host(messages: Messages, found: Mapping[AlertField, FoundLeaf]) -> Iterator[str]:
    """Ask for the affected object, unless the title is the name of a check."""
    host, title = found.get(AlertField.HOSTS), found.get(AlertField.TITLE)
    if host is not None and host.confidence is Confidence.UNSURE:
        excerpt = format_excerpt(host.leaf.value)
        yield (
            f"Is {excerpt} the affected host or object? Otherwise, choose another value for the "
            f"host {_WHERE_TO_CHANGE}."
        )
    is_named = title is not None and title.leaf.thing in _CHECKED_THINGS
    if host is None and AlertField.SERVICE not in found and not is_named:
        which = _list_candidates(messages, title)
        yield (
            f"No value is clearly the affected host or service. If one is, {which}choose it "
            f"{_WHERE_TO_CHANGE}."
        )


def _ask_about_rule(messages: Messages, resolution: Resolution | None) -> Iterator[str]:
    if resolution is None or resolution.confidence is not Confidence.UNSURE:
        return
    other_way = (
        "Paste the message about the recovery to check it."
        if messages.recovery is None
        else f"Otherwise, change this rule {_WHERE_TO_CHANGE}."
    )
    yield f"Is the alert over if {resolution.rule.sentence}? {other_way}"


def _ask_about_identity(
    messages: Messages, identity: Identity | None, title: FoundLeaf | None
) -> Iterator[str]:
    if identity is not None and identity.is_partial:
        yield (
            "No value identifies the alert in all of its messages. The recovery has another "
            f"{identity.values}, so it resolves no alert. Choose a fingerprint {_WHERE_TO_CHANGE}."
        )
    elif identity is None:
        more = "C" if messages.repeat else "Paste another message about the same problem, or c"
        yield (
            "No value identifies the alert in all of its messages, so each message may open a new "
            f"alert. {more}hoose a fingerprint {_WHERE_TO_CHANGE}."
        )
    elif identity.may_merge_hosts:
        compare = "" if messages.repeat else "Paste another message about the same problem. "
        which = _list_candidates(messages, title)
        yield (
            "No value names the affected host or object. If the rule watches several, they share "
            f"one alert. {compare}If a value names them, {which}choose it for the host, "
            f"and add it to the fingerprint, {_WHERE_TO_CHANGE}."
        )
    elif identity.confidence is Confidence.UNSURE:
        other_way = "Paste another message about the same problem, or its recovery, to check it."
        if messages.repeat is not None:
            other_way = f"If not, change the fingerprint {_WHERE_TO_CHANGE}."
        elif messages.recovery is not None:
            other_way = (
                "If the tool repeats messages while a problem lasts, paste a repeat to check it. "
                f"Otherwise, you can change the fingerprint {_WHERE_TO_CHANGE}."
            )
        yield (
            f"Do messages with the same {identity.values} always report the same problem, and "
            f"never two problems? {other_way}"
        )
