"""Proposes the values that identify an alert in all of its messages.

A payload can contain four kinds of identifiers:

- The identifier of a message never identifies the alert.
- The identifier of an alert is the same until the alert is over.
- The identifier of a rule is the same for all hosts.
- The identifier of an object, such as a host, is joined with the identifier of a rule, so that two
  hosts do not share an alert.
"""

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

from domain.alerts.parsing.mapping_rules import MAX_JOINED_VALUES
from domain.alerts.parsing.payload_paths import PayloadPath, find_value, format_path
from domain.alerts.recognition.fields import LINK_OWNERS, RUNNER_WORDS, Confidence
from domain.alerts.recognition.identity_words import (
    ADDRESS_WORDS,
    ALERT_TYPE_KEYS,
    ALERT_WORDS,
    AREA_WORDS,
    BROAD_WORDS,
    CHECKED_WORDS,
    CODE_WORDS,
    ENTITY_WORDS,
    FAULT_WORDS,
    GENERAL_WORDS,
    GROUP_WORDS,
    ID_WORDS,
    JOB_WORDS,
    KEY_WORDS,
    KIND_KEYS,
    LINK_WORDS,
    MESSAGE_CODE,
    MESSAGE_WORDS,
    NAME_WORDS,
    OBJECT_WORDS,
    OCCURRENCE_WORDS,
    OTHER_KINDS,
    PARAMETER_WORDS,
    PLAIN_ID_WORDS,
    PROBE_WORDS,
    PROBLEM_KEYS,
    RULE_WORDS,
    SECRET_KEY_WORDS,
    SECRET_WORDS,
    TEXT_KEYS,
    VULNERABILITY_ID,
    VULNERABILITY_WORDS,
    WIDE_WORDS,
)
from domain.alerts.recognition.key_splitting import split_words
from domain.alerts.recognition.leaves import Leaf, list_leaves
from domain.alerts.recognition.messages import Messages
from domain.alerts.recognition.object_parts import list_parts, list_series
from domain.alerts.recognition.snapshots import SnapshotKeys
from domain.alerts.recognition.state_words import (
    STATE_WORDS,
    find_state,
    find_state_in_sentence,
    is_plain_state,
)
from domain.core.word_joining import join_words

_MAX_LENGTH = 300
#: First words of keys that identify a change of code.
_CHANGE_KEYS = (("change", "id"), ("change", "set"), ("changeset", "id"))
_UNIX_TIME = re.compile(r"=1\d{9}")


@dataclass(frozen=True, kw_only=True)
class Identity:
    """The values whose combination identifies an alert."""

    paths: tuple[PayloadPath, ...]
    confidence: Confidence
    reason: str
    #: True if the identifier of the alert identifies it.
    is_alert_id: bool = False
    #: True if two hosts with the same rule would share an alert.
    may_merge_hosts: bool = False
    #: True if the values in the recovery differ.
    is_partial: bool = False
    #: Path of the first value in the recovery, if it differs.
    moved: PayloadPath | None = None
    #: Words that the texts among the values are compared without.
    ignored_words: tuple[str, ...] = ()

    @property
    def phrase(self) -> str:
        """The paths as a phrase, such as `rule.id and host.name`."""
        first = " or else ".join(map(format_path, filter(None, (self.paths[0], self.moved))))
        return join_words([first, *map(format_path, self.paths[1:])])


def propose_identity(
    messages: Messages,
    host: PayloadPath | None = None,
    environment: PayloadPath | None = None,
) -> Identity | None:
    """Return the values that identify an alert, or None if none were found.

    `host` is the path of the affected host, and `environment` the path of its environment. Both are
    joined with the identifier of a rule.
    """
    stable = [
        leaf
        for leaf in messages.stable_leaves
        if is_identifier(leaf) or (leaf.path == host and _can_identify_host(leaf))
    ]
    return (
        _find_grouping_key(stable, messages)
        or _find_alert_id(stable, messages, host)
        or _join_environment(_find_rule_and_objects(stable, messages, host), messages, environment)
    )


def find_moved_identity(messages: Messages, found: Identity) -> Identity:
    """Find an alert identifier that has a different path in the recovery.

    If there is no such identifier, return `found`, which identifies only the messages about the
    problem.
    """
    stable = messages.without_recovery.stable_leaves
    ordered = sorted(stable, key=lambda each: each.depth)
    for leaf in ordered:
        is_id = is_identifier(leaf) and leaf.is_random and not ID_WORDS.isdisjoint(leaf.own_words)
        if is_id and (moved := messages.find_moved_leaf(leaf)):
            return _move_identity(found, leaf, moved)
    keys = [leaf for leaf in ordered if is_identifier(leaf) and _is_alert_identifier(leaf)]
    for leaf in (each for each in keys if each not in messages.stable_leaves):
        for other in sorted(list_leaves(messages.recovery or {}), key=lambda each: each.depth):
            is_same = other.is_scalar and str(other.value) == str(leaf.value)
            if is_same and _is_alert_identifier(other) and set(leaf.words) & set(other.words):
                return _move_identity(found, leaf, other)
    return replace(found, is_partial=True)


def _move_identity(found: Identity, leaf: Leaf, moved: Leaf) -> Identity:
    is_whole = found.paths == (leaf.path,)
    return replace(
        found,
        paths=(leaf.path,),
        moved=moved.path,
        confidence=found.confidence if is_whole else Confidence.UNSURE,
        reason=f"the recovery has the same value in {format_path(moved.path)}",
    )


def _is_alert_identifier(leaf: Leaf) -> bool:
    """Return whether a key names an identifier of an alert or of a problem."""
    words = set(leaf.own_words)
    is_id = bool(words & (ID_WORDS | set(KEY_WORDS)))
    return is_id and not GROUP_WORDS.isdisjoint(leaf.words[-2:])


def _join_environment(
    found: Identity | None, messages: Messages, environment: PayloadPath | None
) -> Identity | None:
    is_stable = any(leaf.path == environment and leaf.is_scalar for leaf in messages.stable_leaves)
    if found is None or not is_stable or environment is None or environment in found.paths:
        return found
    return replace(found, paths=(*found.paths, environment)[: MAX_JOINED_VALUES + 1])


def _can_identify_host(leaf: Leaf) -> bool:
    """Return whether the value that is read as the host can be part of a fingerprint."""
    return _is_single_item_array(leaf.value) or (
        leaf.is_scalar and len(str(leaf.value)) <= _MAX_LENGTH
    )


def _is_single_item_array(value: object) -> bool:
    return isinstance(value, list) and len(value) == 1


def is_identifier(leaf: Leaf) -> bool:
    """Return whether a value can be a part of a fingerprint."""
    is_other = leaf.is_time or isinstance(leaf.value, bool | float) or not leaf.is_scalar
    own = set(leaf.own_words)
    is_secret = own & SECRET_WORDS or ("key" in own and own & SECRET_KEY_WORDS)
    is_instance = leaf.object_word == "instance" and leaf.is_uuid
    is_named = own & (ID_WORDS | {"url", "link", "name"})
    is_one_time = leaf.belongs_to_run or leaf.own_words[:2] in _CHANGE_KEYS
    is_of_run = is_one_time and is_named and not _is_message_code(leaf)
    is_run = is_instance or is_of_run or leaf.is_run_location
    if (
        is_secret
        or is_run
        or leaf.is_generic
        or leaf.belongs_to_run_part
        or not RUNNER_WORDS.isdisjoint(leaf.words[-2:])
    ):
        return False
    if is_other or len(str(leaf.value)) > _MAX_LENGTH or "\n" in leaf.text or leaf.is_measurement:
        return False
    has_id = bool(own & ID_WORDS) and not leaf.is_count
    return not leaf.describes_actor_or_past and (has_id or not leaf.is_counter)


def _is_message_code(leaf: Leaf) -> bool:
    """Return whether a message identifier is a code that all messages of the same kind share."""
    return leaf.own_words == ("message", "id") and bool(MESSAGE_CODE.fullmatch(leaf.text))


def _find_grouping_key(stable: Sequence[Leaf], messages: Messages) -> Identity | None:
    for leaf in sorted(stable, key=lambda each: each.depth):
        words = set(leaf.own_words)
        # A key such as `min_bytes` is the name of a rule.
        is_alert_key = "key" in words and words & GROUP_WORDS and not _is_chosen_word(leaf)
        is_key = words & set(KEY_WORDS) or is_alert_key
        is_of_alert = set(leaf.words) - words <= GROUP_WORDS | OCCURRENCE_WORDS | RULE_WORDS
        if is_key and is_of_alert:
            reason = f"{format_path(leaf.path)} is made for grouping"
            return Identity(
                paths=(leaf.path,),
                confidence=messages.confidence,
                reason=reason,
                is_alert_id=True,
            )
    return None


def _find_alert_id(
    stable: Sequence[Leaf], messages: Messages, host: PayloadPath | None
) -> Identity | None:
    """Find an identifier of the alert.

    The value of a plain `id` key is used only if another message contains the same value. A short
    identifier may be the identifier of a rule, so it is joined with the host.
    """
    found = []
    for leaf in stable:
        is_path = leaf.is_resource_path and leaf.own_words == ("name",)
        qualifiers = set(leaf.words) - ID_WORDS - {"url", "name" * is_path}
        own = set(leaf.own_words)
        is_link = bool(own & LINK_WORDS and own & ALERT_WORDS and messages.other_messages)
        is_id = bool(own & ID_WORDS) or leaf.is_uuid or is_path
        if not (is_id or is_link) or qualifiers & (RULE_WORDS - ALERT_WORDS | OBJECT_WORDS):
            continue
        is_of_rule = bool(qualifiers & RULE_WORDS) and _is_chosen_word(leaf)
        if set(leaf.words[-2:]) & ALERT_WORDS and not is_of_rule:
            # An incident is more specific than the alert that opens it, because the alert may be a
            # rule.
            is_general = 0.25 * bool({"alert", "alarm"} & own)
            found.append((leaf.depth + 0.5 * is_link + is_general, leaf))
        elif (
            messages.other_messages
            and _is_occurrence_identifier(leaf, qualifiers)
            and leaf.is_random
        ):
            found.append((leaf.depth + 2, leaf))
    if not found:
        return None
    leaf = min(found, key=lambda each: each[0])[1]
    reason, confidence = f"{format_path(leaf.path)} identifies the alert", messages.confidence
    if messages.other_messages:
        reason += " and is the same in all messages"
    # Some tools use such identifiers for alert rules or for messages.
    is_numbered = leaf.words == ("id",) or bool(MESSAGE_WORDS & set(leaf.words[-2:]))
    if not messages.other_messages or (messages.repeat is None and is_numbered):
        confidence = Confidence.UNSURE
    joined = _list_paths_to_join(leaf, stable, messages, host)
    # Some messages have the same identifier in only one of two objects.
    twins = (each.path for each in stable if each.path[-1] == leaf.path[-1])
    same = (path for path in twins if find_value(messages.firing, path) == leaf.value)
    twin = next((path for path in same if path != leaf.path), None)
    return Identity(
        paths=(leaf.path, *joined),
        confidence=confidence,
        reason=reason,
        is_alert_id=True,
        moved=None if joined or messages.other_messages else twin,
    )


def _is_occurrence_identifier(leaf: Leaf, qualifiers: Collection[str]) -> bool:
    """Return whether an identifier belongs to an occurrence, such as `semgrep_finding.id`."""
    is_named = leaf.words[-2:-1] in {("finding",), ("fault",), ("detection",)}
    return is_named or OCCURRENCE_WORDS.issuperset(qualifiers)


def _list_paths_to_join(
    leaf: Leaf, stable: Sequence[Leaf], messages: Messages, host: PayloadPath | None
) -> Sequence[PayloadPath]:
    """Return the paths of the objects to join with an identifier that may belong to a rule."""
    is_alert = bool({"alert", "alarm"} & set(leaf.words[-2:]))
    if not (messages.other_messages or is_alert):
        return ()
    hosts = [each for each in stable if each.path == host]
    if leaf.is_random:
        # The definition of an alert can also have a generated identifier.
        return [each.path for each in hosts if is_alert]
    named = [each for each in stable if is_object(each) and not each.is_link]
    objects = _drop_duplicate_leaves(hosts, named if messages.other_messages else [])
    return [each.path for each in objects if each != leaf][:MAX_JOINED_VALUES]


def _find_rule_and_objects(
    stable: Sequence[Leaf], messages: Messages, host: PayloadPath | None
) -> Identity | None:
    rule = _find_rule(stable, messages)
    hosts = [leaf for leaf in stable if leaf.path == host and leaf != rule]
    objects = _list_objects(stable, rule, has_host=bool(hosts))
    is_alone = _is_generated_check_id(rule)
    if rule and set(rule.own_words) in KIND_KEYS and not (hosts or objects):
        rule = None  # Otherwise, all problems of this kind would share an alert.
    specific = find_specific_name(rule, stable)
    kind = None if specific else _find_problem_kind(rule, [*hosts, *objects], stable)
    rules = [leaf for leaf in (rule, specific, kind) if leaf is not None]
    named = rules + _drop_duplicate_leaves(hosts, objects)
    named += list_parts(messages.stable_leaves) if hosts or objects else list_series(stable, rule)
    chosen = list(dict.fromkeys(leaf.path for leaf in named))
    objects += hosts
    if not chosen:
        others = filter(_identifies_object, stable)
        other = min(others, key=lambda leaf: leaf.depth, default=None)
        chosen = [other.path] if other else []
    if not chosen:
        return None
    paths = tuple(chosen[: MAX_JOINED_VALUES + 1])
    # A check that sends several types of alerts may report several problems.
    has_types = any(set(leaf.own_words) in ALERT_TYPE_KEYS for leaf in messages.leaves)
    is_complete = bool(rule and (objects or (is_alone and not has_types)))
    evidence = ", which are the same in all messages" if messages.other_messages else ""
    # An array may be empty when the problem is over.
    is_in_array = any(isinstance(key, int) for path in chosen for key in path)
    is_in_array |= any(_is_single_item_array(leaf.value) for leaf in hosts)
    # A title may contain values that change, and the recovery may have another title.
    is_varying = rule is not None and (rule.words == ("id",) or "title" in rule.own_words)
    is_varying |= rule is not None and "(" in rule.text and rule.own_words[-1:] in TEXT_KEYS
    is_proven = messages.other_messages or not (
        is_in_array or is_varying or _may_identify_run(rule, objects)
    )
    may_merge_hosts = not (is_alone or specific) and all(
        AREA_WORDS.intersection(leaf.own_words) for leaf in objects
    )
    # The recovery of a problem may be of another kind.
    is_known = kind is None or messages.recovery is not None
    is_sure = is_complete and is_proven and is_known and not may_merge_hosts
    return Identity(
        paths=paths,
        confidence=messages.confidence if is_sure else Confidence.UNSURE,
        reason=f"these values name the rule and the object{evidence}",
        may_merge_hosts=may_merge_hosts,
    )


def _find_problem_kind(
    rule: Leaf | None, objects: Sequence[Leaf], stable: Sequence[Leaf]
) -> Leaf | None:
    """Return the kind of the problem if one object can have several problems of the same rule.

    In `{"device": "web-1", "type": "HostCpu"}`, the kind is `type`.
    """
    for leaf in stable if rule and ID_WORDS.intersection(rule.own_words) else ():
        is_beside = leaf.words == ("name",) and rule and leaf.path[:-1] == rule.path[:-1]
        if is_beside and len(split_words(leaf.text)) > 1 and _is_constant_code(leaf):
            return leaf
    words = BROAD_WORDS.intersection(rule.own_words) if rule else ()
    is_broad = rule is None or words or rule.words == ("name",)
    is_in_area = all(AREA_WORDS.intersection(leaf.own_words) for leaf in objects)
    if not is_broad or (is_in_area and "service" not in words):
        return None
    found = [
        (PROBLEM_KEYS.index(set(leaf.own_words)), leaf.depth, leaf)
        for leaf in stable
        if set(leaf.own_words) in PROBLEM_KEYS and OBJECT_WORDS.isdisjoint(leaf.words[:-1])
        if leaf.text and " " not in leaf.text and not leaf.is_generic and not find_state(leaf.value)
    ]
    return min(found, key=lambda each: each[:2])[2] if found else None


def _may_identify_run(rule: Leaf | None, objects: Sequence[Leaf]) -> bool:
    """Return whether a generated identifier may identify only one run of a job."""
    numbered = (
        list(objects) if rule is None or rule.object_word not in JOB_WORDS else [*objects, rule]
    )
    is_numbered = any(str(each.value).isdecimal() or "pod" in each.own_words for each in numbered)
    return is_numbered or (rule is not None and rule.is_random)


def _is_generated_check_id(rule: Leaf | None) -> bool:
    """Return whether a rule is the generated identifier of a check on one object."""
    return rule is not None and rule.object_word in CHECKED_WORDS and rule.is_random


def _list_objects(stable: Sequence[Leaf], rule: Leaf | None, *, has_host: bool) -> list[Leaf]:
    objects = [leaf for leaf in stable if leaf != rule and is_object(leaf)]
    if others := [leaf for leaf in objects if leaf.object_word not in PROBE_WORDS]:
        objects = others
    # The identifier of an entity is sufficient. Identifiers at deeper levels are not considered.
    ids = [leaf for leaf in objects if "id" in leaf.own_words]
    entities = [leaf.depth for leaf in ids if leaf.object_word in ENTITY_WORDS]
    inner = [leaf for leaf in ids if entities and leaf.depth > min(entities)]
    objects = [leaf for leaf in objects if leaf not in inner]
    if rule and (has_host or len(objects) > 1):
        # A link whose key contains no other words may lead to one run or one message in the tool.
        objects = [leaf for leaf in objects if leaf.words not in (("url",), ("link",))]
    if not has_host and all(WIDE_WORDS & set(leaf.own_words) for leaf in objects):
        objects += [leaf for leaf in _list_named_objects(stable) if leaf not in objects]
    return objects


def _list_named_objects(stable: Sequence[Leaf]) -> Iterator[Leaf]:
    """Yield the identifiers of objects of any kind that also have a name."""
    named = {leaf.path[:-1]: leaf for leaf in stable if leaf.own_words[-1:] == ("name",)}
    # An object within a named object, such as the license of a repository, is its property.
    things = [path for path in named if path and split_words(str(path[-1]))[-1:][0] in OBJECT_WORDS]
    inner = {path for path in named for other in things if other == path[: len(other)] != path}
    for leaf in (each for each in stable if each.path[:-1] not in inner):
        thing = leaf.object_word
        is_other = leaf.belongs_to_run or thing in OCCURRENCE_WORDS | ALERT_WORDS | RULE_WORDS
        has_name = leaf.path[:-1] in named and named[leaf.path[:-1]].object_word == thing
        if thing and has_name and {"id", "key"} & set(leaf.own_words) and not is_other:
            yield leaf


def find_specific_name(rule: Leaf | None, leaves: Sequence[Leaf]) -> Leaf | None:
    """Return the name of the check if the rule, such as a policy, can apply to several checks."""
    if rule is None or rule.object_word not in GENERAL_WORDS or "title" in rule.own_words:
        return None
    named = [
        leaf
        for leaf in leaves
        if leaf.own_words == ("rule",)
        or (leaf.own_words[-1:] == ("name",) and leaf.object_word in CHECKED_WORDS)
    ]
    checks = [leaf for leaf in named if leaf.text and not leaf.describes_actor_or_past]
    return next((leaf for leaf in checks if leaf.path[:-1] == rule.path[:-1]), None)


def identify_snapshot_problem(messages: Messages, snapshot: SnapshotKeys) -> Identity | None:
    """Return the identifiers of the first new problem and of its object, or None."""
    known = filter(is_identifier, messages.without_recovery.stable_leaves)
    ids = [leaf for leaf in known if "id" in leaf.own_words]
    items = [leaf for leaf in ids if leaf.path[0] == snapshot.added]
    objects = [leaf for leaf in ids if leaf.path[0] not in snapshot and is_object(leaf)]
    if not items:
        return None
    paths = [min(each, key=lambda leaf: leaf.depth).path for each in (items, objects) if each]
    return Identity(
        paths=tuple(paths),
        confidence=Confidence.UNSURE,
        reason="the problem and its object",
        may_merge_hosts=not objects,
    )


def _identifies_object(leaf: Leaf) -> bool:
    """Return whether a nested value identifies an object of an unknown kind."""
    return bool(set(leaf.own_words) & PLAIN_ID_WORDS) and len(leaf.path) > 1


def _find_rule(stable: Sequence[Leaf], messages: Messages) -> Leaf | None:
    """Return the rule's identifier or name, or else a string without states or numbers."""
    is_code = any(CODE_WORDS & set(leaf.own_words) for leaf in messages.leaves)
    rated = [
        (cost + leaf.depth, leaf)
        for leaf in stable
        if not (is_code and {"title", "subject"} & set(leaf.own_words))
        and (cost := _compute_rule_cost(leaf, messages)) is not None
    ]
    return min(rated, key=lambda each: each[0])[1] if rated else None


def _compute_rule_cost(leaf: Leaf, messages: Messages) -> float | None:
    """Return the cost of a value as the rule's name, or None if it cannot be the name.

    The cost does not include the depth of the value.
    """
    own = set(leaf.own_words)
    is_named = bool(own & (ID_WORDS | NAME_WORDS))
    is_rule = bool((own | set(leaf.words[-2:])) & RULE_WORDS)
    named = find_state(leaf.value)
    has_state = named is not None and split_words(leaf.text)[-1] == named.word
    is_single = leaf.object_word in OCCURRENCE_WORDS and leaf.is_random
    is_id = leaf.words == ("id",) and (messages.other_messages or _is_chosen_word(leaf))
    is_text = leaf.words == ("name",) or bool(
        own & {"message", "msg", "text"} and _is_constant_text(leaf)
    )
    is_of_object = not ENTITY_WORDS.isdisjoint(leaf.words[:-1])
    is_other = is_object(leaf) or own & OTHER_KINDS or (is_single and not messages.other_messages)
    costs = (
        (-3, _is_vulnerability(leaf)),
        (6, own in KIND_KEYS and not has_state and not is_of_object),
        ((not own & ID_WORDS) * 0.5 + ("event" in own), not is_other and is_rule and is_named),
        (2, not is_other and ((is_rule and not has_state) or is_id)),
        (1.5, _is_message_code(leaf)),
        (2, own == {"category"} and bool(set(leaf.words[-2:]) & FAULT_WORDS)),
        (2, not is_other and own & FAULT_WORDS and (is_named or "code" in own) and not has_state),
        (3, not is_other and "reason" in own and _is_constant_text(leaf)),
        (4, not is_other and is_text),
    )
    is_flag = leaf.value in (0, 1) and not is_named
    is_other_text = leaf.is_link or leaf.is_run_reason or "command" in own
    # A rule can be named after a state, such as `500 error`.
    is_state = is_plain_state(leaf.value) and not (is_rule and "name" in own)
    if is_state or is_other_text or is_flag:
        return None
    return min((cost for cost, applies in costs if applies), default=None)


def _is_vulnerability(leaf: Leaf) -> bool:
    """Return whether a value identifies the only vulnerability that a message is about."""
    is_id = ID_WORDS & set(leaf.own_words) and VULNERABILITY_WORDS & set(leaf.words[-2:])
    is_known = bool(is_id or VULNERABILITY_ID.fullmatch(leaf.text))
    return is_known and not any(isinstance(key, int) for key in leaf.path)


def _is_chosen_word(leaf: Leaf) -> bool:
    """Return whether an identifier is a word that a person chose, such as the name of a rule."""
    return any(each.isalpha() for each in leaf.text) and not leaf.is_random


def _is_constant_text(leaf: Leaf) -> bool:
    """Return whether a string is probably the same in each message: it has no numbers or states."""
    return not any(each.isdigit() for each in leaf.text) and not find_state_in_sentence(leaf.text)


def _is_constant_code(leaf: Leaf) -> bool:
    """Return whether a string is a code, such as `Host.Escalation`, without states or numbers."""
    return " " not in leaf.text and not leaf.is_link and _is_constant_text(leaf)


def is_object(leaf: Leaf) -> bool:
    """Return whether a value names or identifies an object, such as a host."""
    words = leaf.words[-2:]
    if (
        "text" in leaf.own_words or set(leaf.own_words) & STATE_WORDS.keys()
    ):  # Such a key does not name an object: for example, it lists failed locations.
        return False
    if leaf.is_link and _UNIX_TIME.search(leaf.text):  # The link contains the time of the message.
        return False
    if leaf.is_link and not set(leaf.words) <= LINK_OWNERS | LINK_WORDS:
        return False
    is_position = leaf.own_words[-1:] == ("column",) and isinstance(leaf.value, int)
    if is_position or not PARAMETER_WORDS.isdisjoint(leaf.words[:-1]):
        return False
    is_id_or_name = bool(set(leaf.own_words) & (ID_WORDS | NAME_WORDS | {"url", "address", "ip"}))
    last_is_object = bool(leaf.own_words) and leaf.own_words[-1] in OBJECT_WORDS
    return (
        leaf.is_version_name
        or last_is_object
        or (is_id_or_name and bool(set(words) & OBJECT_WORDS))
    )


def list_subject_leaves(leaves: Sequence[Leaf]) -> Sequence[Leaf]:
    """Return the values that name the object and the rule in a message.

    If no rule is named, the text of the message is used in place of the rule. Identifiers of alerts
    are excluded, because they can differ between messages. The result is empty if only an object is
    named.
    """
    named = [leaf for leaf in leaves if is_object(leaf) or _is_rule(leaf)]
    named = [leaf for leaf in named if _is_subject_name(leaf)]
    objects = [leaf for leaf in named if is_object(leaf)]
    rules = [leaf for leaf in named if not is_object(leaf)]
    rules = rules or [leaf for leaf in leaves if set(leaf.own_words) in ALERT_TYPE_KEYS]
    texts = [leaf for leaf in leaves if leaf.own_words[-1:] in TEXT_KEYS and leaf.text]
    return [*objects, *(rules or texts)] if rules or texts else []


def _is_rule(leaf: Leaf) -> bool:
    words, last = set(leaf.words[-2:]), set(leaf.own_words[-1:])
    is_name = bool(last & (RULE_WORDS | NAME_WORDS | ID_WORDS))
    return leaf.words == ("name",) or bool(words & RULE_WORDS and is_name)


def _is_subject_name(leaf: Leaf) -> bool:
    """Return whether a value is a name, or an array of names, that is not specific to one alert."""
    own, words = set(leaf.own_words), set(leaf.words[-2:])
    is_id = bool(own & ID_WORDS)
    is_of_alert = bool(words & ALERT_WORDS) and (leaf.is_link or is_id)
    is_number = isinstance(leaf.value, int) and not is_id
    is_of_message = leaf.is_uuid and not is_object(leaf)
    if is_of_alert or is_number or is_of_message or is_plain_state(leaf.value):
        return False
    return isinstance(leaf.value, list) or is_identifier(leaf)


def _drop_duplicate_leaves(hosts: Sequence[Leaf], objects: Sequence[Leaf]) -> list[Leaf]:
    """Return one leaf for each distinct value and object, with the least nested leaves first.

    The affected hosts come first. Other addresses are only used if no object has a name.
    """
    named = [leaf for leaf in objects if leaf.own_words[-1] not in ADDRESS_WORDS]
    by_depth = sorted(named or objects, key=lambda leaf: (leaf.depth, leaf.is_link))
    ordered = [*hosts, *by_depth]
    values: dict[str, Leaf] = {}
    for leaf in ordered:
        values.setdefault(str(leaf.value).casefold(), leaf)
    found: dict[tuple[object, ...], Leaf] = {}
    for leaf in values.values():
        kind = frozenset(leaf.own_words) - PLAIN_ID_WORDS - NAME_WORDS
        found.setdefault((leaf.path[:-1], kind), leaf)
    return list(found.values())
