"""Proposes the values that identify an alert in all of its messages.

A payload can contain four kinds of identifiers. The identifier of a message never identifies the
alert. The identifier of an alert is the same until the alert is over. The identifier of a rule is
the same for all hosts. An object, such as a host, also has an identifier. The identifier of a rule
is joined with the objects, so that two hosts do not share an alert.
"""

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

from domain.alerts.reading.mapping_rules import MAX_JOINED_VALUES
from domain.alerts.reading.paths import PayloadPath, format_path
from domain.alerts.recognition.fields import LINK_OWNERS, RUNNER_WORDS, Confidence
from domain.alerts.recognition.key_words import parse_word_set, split_words
from domain.alerts.recognition.leaves import Leaf, list_leaves
from domain.alerts.recognition.messages import Messages
from domain.alerts.recognition.snapshots import Snapshot
from domain.alerts.recognition.states import (
    STATE_WORDS,
    find_state,
    find_state_in_sentence,
    is_plain_state,
)
from domain.core.word_lists import join_words

_KEY_WORDS = ("fingerprint", "dedup", "dedupe", "deduplication", "alias")
_ALERT_WORDS = parse_word_set(
    "alert incident issue problem alarm violation outage case ticket investigation"
)
#: Words in keys that are used for grouping. Without `key`, an aggregation is the statistic of a
#: metric.
_GROUP_WORDS = _ALERT_WORDS | parse_word_set("group aggreg aggregation")
_RULE_WORDS = parse_word_set(
    "rule check monitor trigger policy condition test service search job query plugin "
    "alertname alert alarm sensor item slo subject title workflow pipeline definition "
    "scenario component metric budget dag flow task function schedule"
)
#: Kinds of objects whose name or code is the name of a rule.
_FAULT_WORDS = parse_word_set("issue problem event fault error detection finding")
#: Words of keys for the identifier of a vulnerability, and the most common identifiers.
_VULNERABILITY_WORDS = parse_word_set("vulnerability vuln cve advisory")
_VULNERABILITY_ID = re.compile(r"(CVE|GHSA)-[\w-]+", re.IGNORECASE)
#: Codes of messages, such as `PSU0003` or `Environmental.1.1.TemperatureNormal`.
_MESSAGE_CODE = re.compile(r"[A-Z]{2,6}\d{1,4}|(\w+\.)*[A-Z][A-Za-z]+")
#: Words in the keys of messages about code, whose title is a commit message.
_CODE_WORDS = parse_word_set("commit branch build deploy")
#: Words in keys whose value is a type. Such a value names the rule only if no other value does.
_ALERT_TYPE_KEYS = ({"alert", "type"}, {"alarm", "type"}, {"event", "type"})
_KIND_KEYS = ({"type"}, *_ALERT_TYPE_KEYS, {"kind"}, {"category"})
_OTHER_KINDS = parse_word_set("type kind category method protocol status state source text url")
#: Words in keys for credentials, and words with which the word `key` names a credential.
_SECRET_WORDS = parse_word_set(
    "token secret password passphrase credential signature authorization webhook"
)
_SECRET_KEY_WORDS = parse_word_set("api access auth routing integration license private signing")
_OBJECT_WORDS = parse_word_set(
    "host hostname ident queue instance node server machine device entity resource pod target "
    "address ip fqdn url interface disk mount mountpoint filesystem container vm cluster region "
    "zone namespace object site location asset website domain database queue endpoint cpu project "
    "repository repo branch ref workspace dataset table column bucket volume topic broker ap "
    "switch router gateway agent probe replica workload share pool datastore vm unit tunnel peer "
    "certificate domain originator backup subscriber appliance hypervisor sensor application app "
    "service"
)
_ENTITY_WORDS = parse_word_set("entity resource target object asset")
#: Words for objects that contain other objects.
AREA_WORDS = parse_word_set("cluster region zone namespace site location project workspace")
#: Words for objects that contain other objects or that several problems share.
_WIDE_WORDS = AREA_WORDS | parse_word_set("branch ref repository repo")
#: Words for the location that runs a check.
_PROBE_WORDS = parse_word_set("location probe agent")
#: Kinds of rules that check one object.
_CHECKED_WORDS = parse_word_set("test check monitor scenario slo sensor")
_JOB_WORDS = parse_word_set("job task")
#: Words for rules that can apply to several checks.
_GENERAL_WORDS = parse_word_set("policy alert alarm")
#: Words for addresses of objects; such objects often also have a name.
_ADDRESS_WORDS = parse_word_set("url address ip")
_ID_WORDS = parse_word_set(
    "id uuid guid uid key identifier number ref reference arn urn crn rrn token serial"
)
_PLAIN_ID_WORDS = _ID_WORDS - parse_word_set("ref reference arn urn crn rrn")
_NAME_WORDS = parse_word_set("name title slug label")
#: Kinds of objects that exist once for each alert. Other objects, such as networks and boards, have
#: the same identifier in several alerts.
_OCCURRENCE_WORDS = parse_word_set(
    "event finding fault error signal detection occurrence object item series exception downtime"
)
#: Words for objects that some tools renumber in each message about the same problem.
_MESSAGE_WORDS = parse_word_set("alert alarm event detection finding signal")
_LINK_WORDS = parse_word_set("url link")
_TEXT_KEYS = tuple((word,) for word in ("message", "msg", "text", "summary", "description"))
_MAX_LENGTH = 300
_UNIX_TIME = re.compile(r"=1\d{9}")
_PARTS = re.compile(r"[^A-Za-z0-9]+")


@dataclass(frozen=True, kw_only=True)
class Identity:
    """The values whose combination identifies an alert."""

    paths: tuple[PayloadPath, ...]
    confidence: Confidence
    reason: str
    #: True if two hosts with the same rule would share an alert.
    may_merge_hosts: bool = False
    #: True if the values in the recovery differ.
    is_partial: bool = False
    #: Path of the first value in the recovery, if it differs.
    moved: PayloadPath | None = None

    @property
    def values(self) -> str:
        """The paths as a phrase."""
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
        if _is_identifier(leaf) or (leaf.path == host and _is_single(leaf.value))
    ]
    return (
        _find_key(stable, messages)
        or _find_alert_id(stable, messages, host)
        or _join_environment(_find_rule_and_objects(stable, messages, host), messages, environment)
    )


def find_moved_identity(messages: Messages, found: Identity) -> Identity:
    """Return the identifier of an alert that has another key in the recovery.

    Otherwise, return `found`, which only identifies the messages about the problem.
    """
    problem = messages.without_recovery
    keys = [leaf for leaf in problem.stable_leaves if _is_identifier(leaf) and _is_of_alert(leaf)]
    for leaf in sorted(keys, key=lambda each: each.depth):
        for other in sorted(list_leaves(messages.recovery or {}), key=lambda each: each.depth):
            is_same = other.is_scalar and str(other.value) == str(leaf.value)
            if is_same and _is_of_alert(other) and set(leaf.words) & set(other.words):
                is_whole = found.paths == (leaf.path,)
                return replace(
                    found,
                    paths=(leaf.path,),
                    moved=other.path,
                    confidence=found.confidence if is_whole else Confidence.UNSURE,
                    reason=f"the recovery has the same value in {format_path(other.path)}",
                )
    return replace(found, is_partial=True)


def _is_of_alert(leaf: Leaf) -> bool:
    """Return whether a key names an identifier of an alert or of a problem."""
    words = set(leaf.own_words)
    is_id = bool(words & (_ID_WORDS | set(_KEY_WORDS)))
    return is_id and not _GROUP_WORDS.isdisjoint(leaf.words[-2:])


def _join_environment(
    found: Identity | None, messages: Messages, environment: PayloadPath | None
) -> Identity | None:
    is_stable = any(leaf.path == environment and leaf.is_scalar for leaf in messages.stable_leaves)
    if found is None or not is_stable or environment is None or environment in found.paths:
        return found
    return replace(found, paths=(*found.paths, environment)[: MAX_JOINED_VALUES + 1])


def _is_single(value: object) -> bool:
    return isinstance(value, list) and len(value) == 1


def _is_identifier(leaf: Leaf) -> bool:
    is_other = leaf.is_time or isinstance(leaf.value, bool | float) or not leaf.is_scalar
    own = set(leaf.own_words)
    is_secret = own & _SECRET_WORDS or ("key" in own and own & _SECRET_KEY_WORDS)
    is_instance = leaf.thing == "instance" and leaf.is_uuid
    is_named = own & (_ID_WORDS | {"url", "link", "name"})
    is_of_run = leaf.is_of_run and is_named and not _is_message_code(leaf)
    is_run = is_instance or is_of_run or leaf.is_place_of_run
    if (
        is_secret
        or is_run
        or leaf.is_generic
        or leaf.is_of_part
        or not RUNNER_WORDS.isdisjoint(leaf.words[-2:])
    ):
        return False
    if is_other or len(str(leaf.value)) > _MAX_LENGTH or "\n" in leaf.text:
        return False
    has_id = bool(own & _ID_WORDS)
    return not leaf.is_about_other and (has_id or not leaf.is_counter)


def _is_message_code(leaf: Leaf) -> bool:
    """Return whether the identifier of a message is a code that messages of a kind share."""
    return leaf.own_words == ("message", "id") and bool(_MESSAGE_CODE.fullmatch(leaf.text))


def _find_key(stable: Sequence[Leaf], messages: Messages) -> Identity | None:
    for leaf in sorted(stable, key=lambda each: each.depth):
        words = set(leaf.own_words)
        is_key = words & set(_KEY_WORDS) or ("key" in words and words & _GROUP_WORDS)
        is_of_alert = set(leaf.words) - words <= _GROUP_WORDS | _OCCURRENCE_WORDS | _RULE_WORDS
        if is_key and is_of_alert:
            reason = f"{format_path(leaf.path)} is made for grouping"
            return Identity(paths=(leaf.path,), confidence=messages.confidence, reason=reason)
    return None


def _find_alert_id(
    stable: Sequence[Leaf], messages: Messages, host: PayloadPath | None
) -> Identity | None:
    """Find an identifier of the alert.

    The plain key `id` needs a second message as evidence. A short identifier may be the identifier
    of a rule, so it is joined with the host.
    """
    found = []
    for leaf in stable:
        is_path = leaf.is_resource_path and leaf.own_words == ("name",)
        qualifiers = set(leaf.words) - _ID_WORDS - {"url", "name" * is_path}
        own = set(leaf.own_words)
        is_link = bool(own & _LINK_WORDS and own & _ALERT_WORDS and messages.others)
        is_id = bool(own & _ID_WORDS) or leaf.is_uuid or is_path
        if not (is_id or is_link) or qualifiers & (_RULE_WORDS - _ALERT_WORDS | _OBJECT_WORDS):
            continue
        is_of_rule = bool(qualifiers & _RULE_WORDS) and _is_word(leaf)
        if set(leaf.words[-2:]) & _ALERT_WORDS and not is_of_rule:
            # An incident is more specific than the alert that opens it, because the alert may be a
            # rule.
            is_general = 0.25 * bool({"alert", "alarm"} & own)
            found.append((leaf.depth + 0.5 * is_link + is_general, leaf))
        elif messages.others and _is_of_occurrence(leaf, qualifiers) and _looks_random(leaf):
            found.append((leaf.depth + 2, leaf))
    if not found:
        return None
    leaf = min(found, key=lambda each: each[0])[1]
    reason, confidence = f"{format_path(leaf.path)} identifies the alert", messages.confidence
    if messages.others:
        reason += " and is the same in all messages"
    # Some tools use such identifiers for alert rules or for messages.
    is_numbered = leaf.words == ("id",) or bool(_MESSAGE_WORDS & set(leaf.words[-2:]))
    is_of_message = messages.repeat is None and is_numbered
    is_of_rule = bool(set(leaf.words) & _RULE_WORDS) and not _looks_random(leaf)
    joined = _list_joined(leaf, stable, messages, host)
    # The recovery of an alert with a generated identifier may not contain the host.
    is_alone = not (joined and _looks_random(leaf))
    if is_of_message if messages.others else is_of_rule or not is_alone:
        confidence = Confidence.UNSURE
    paths = (leaf.path, *joined)
    return Identity(paths=paths, confidence=confidence, reason=reason)


def _is_of_occurrence(leaf: Leaf, qualifiers: Collection[str]) -> bool:
    """Return whether an identifier belongs to an occurrence, such as `semgrep_finding.id`."""
    is_named = leaf.words[-2:-1] in {("finding",), ("fault",), ("detection",)}
    return is_named or _OCCURRENCE_WORDS.issuperset(qualifiers)


def _list_joined(
    leaf: Leaf, stable: Sequence[Leaf], messages: Messages, host: PayloadPath | None
) -> Sequence[PayloadPath]:
    """Return the paths of the objects to join with an identifier that may belong to a rule."""
    is_alert = bool({"alert", "alarm"} & set(leaf.words[-2:]))
    if not (messages.others or is_alert):
        return ()
    hosts = [each for each in stable if each.path == host]
    if _looks_random(leaf):
        # The definition of an alert can also have a generated identifier.
        return [each.path for each in hosts if is_alert]
    named = [each for each in stable if is_object(each) and not each.is_link]
    objects = _drop_repeated(hosts, named if messages.others else [])
    return [each.path for each in objects if each != leaf][:MAX_JOINED_VALUES]


def _looks_random(leaf: Leaf) -> bool:
    """Return whether an identifier seems to be generated, unlike a name or a small number."""
    text = leaf.text.rpartition("/")[2] if leaf.is_resource_path else str(leaf.value)
    has_digits = any(each.isdigit() for each in text)
    has_word = any(len(part) > 3 and part.isalpha() for part in _PARTS.split(text))  # noqa: PLR2004
    is_long = len(text) >= 8 and has_digits and " " not in text  # noqa: PLR2004
    return leaf.is_uuid or (is_long and (leaf.is_link or not has_word))


def _find_rule_and_objects(
    stable: Sequence[Leaf], messages: Messages, host: PayloadPath | None
) -> Identity | None:
    rule = _find_rule(stable, messages)
    hosts = [leaf for leaf in stable if leaf.path == host and leaf != rule]
    objects = _list_objects(stable, rule, has_host=bool(hosts))
    is_alone = _is_check(rule)
    if rule and set(rule.own_words) in _KIND_KEYS and not (hosts or objects):
        rule = None  # Otherwise, all problems of this kind would share an alert.
    specific = find_specific_name(rule, stable)
    rules = [leaf for leaf in (rule, specific) if leaf is not None]
    named = rules + _drop_repeated(hosts, objects)
    chosen = list(dict.fromkeys(leaf.path for leaf in named))
    objects += hosts
    if not chosen:
        others = filter(_has_identifier, stable)
        other = min(others, key=lambda leaf: leaf.depth, default=None)
        chosen = [other.path] if other else []
    if not chosen:
        return None
    paths = tuple(chosen[: MAX_JOINED_VALUES + 1])
    # A check that sends several types of alerts may report several problems.
    has_types = any(set(leaf.own_words) in _ALERT_TYPE_KEYS for leaf in messages.leaves)
    is_complete = bool(rule and (objects or (is_alone and not has_types)))
    evidence = ", which are the same in all messages" if messages.others else ""
    # An array may be empty when the problem is over.
    is_in_array = any(isinstance(key, int) for path in chosen for key in path)
    is_in_array |= any(_is_single(leaf.value) for leaf in hosts)
    is_plain_id = rule is not None and rule.words == ("id",)
    is_proven = messages.others or not (is_in_array or is_plain_id or _may_be_run(rule, objects))
    may_merge_hosts = not (is_alone or specific) and all(
        AREA_WORDS.intersection(leaf.own_words) for leaf in objects
    )
    is_sure = is_complete and is_proven and not may_merge_hosts
    return Identity(
        paths=paths,
        confidence=messages.confidence if is_sure else Confidence.UNSURE,
        reason=f"the rule and the object{evidence}",
        may_merge_hosts=may_merge_hosts,
    )


def _may_be_run(rule: Leaf | None, objects: Sequence[Leaf]) -> bool:
    """Return whether a generated identifier may identify only one run of a job."""
    numbered = list(objects) if rule is None or rule.thing not in _JOB_WORDS else [*objects, rule]
    is_numbered = any(type(each.value) is int for each in numbered)
    return is_numbered or (rule is not None and _looks_random(rule))


def _is_check(rule: Leaf | None) -> bool:
    """Return whether a rule is the generated identifier of a check on one object."""
    return rule is not None and rule.thing in _CHECKED_WORDS and _looks_random(rule)


def _list_objects(stable: Sequence[Leaf], rule: Leaf | None, *, has_host: bool) -> list[Leaf]:
    objects = [leaf for leaf in stable if leaf != rule and is_object(leaf)]
    if others := [leaf for leaf in objects if leaf.thing not in _PROBE_WORDS]:
        objects = others
    # The identifier of an entity is enough. More nested objects usually contain the entity.
    ids = [leaf for leaf in objects if "id" in leaf.own_words]
    entities = [leaf.depth for leaf in ids if leaf.thing in _ENTITY_WORDS]
    inner = [leaf for leaf in ids if entities and leaf.depth > min(entities)]
    objects = [leaf for leaf in objects if leaf not in inner]
    if rule and (has_host or len(objects) > 1):
        # A link whose key contains no other words may lead to one run or one message in the tool.
        objects = [leaf for leaf in objects if leaf.words not in (("url",), ("link",))]
    if not has_host and all(_WIDE_WORDS & set(leaf.own_words) for leaf in objects):
        objects += [leaf for leaf in _list_named_things(stable) if leaf not in objects]
    return objects


def _list_named_things(stable: Sequence[Leaf]) -> Iterator[Leaf]:
    """Yield the identifiers of objects of any kind that also have a name."""
    named = {leaf.path[:-1]: leaf for leaf in stable if leaf.own_words[-1:] == ("name",)}
    for leaf in stable:
        thing = leaf.thing
        is_other = leaf.is_of_run or thing in _OCCURRENCE_WORDS | _ALERT_WORDS | _RULE_WORDS
        has_name = leaf.path[:-1] in named and named[leaf.path[:-1]].thing == thing
        if thing and has_name and {"id", "key"} & set(leaf.own_words) and not is_other:
            yield leaf


def find_specific_name(rule: Leaf | None, leaves: Sequence[Leaf]) -> Leaf | None:
    """Return the name of the check if the rule, such as a policy, can apply to several checks."""
    if rule is None or rule.thing not in _GENERAL_WORDS or "title" in rule.own_words:
        return None
    named = [
        leaf for leaf in leaves if leaf.own_words[-1:] == ("name",) and not leaf.is_about_other
    ]
    checks = [leaf for leaf in named if leaf.thing in _CHECKED_WORDS and leaf.text]
    return next((leaf for leaf in checks if leaf.path[:-1] == rule.path[:-1]), None)


def identify_item(messages: Messages, snapshot: Snapshot) -> Identity | None:
    """Return the identifiers of the first new problem and of its object, or None."""
    known = filter(_is_identifier, messages.without_recovery.stable_leaves)
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


def _has_identifier(leaf: Leaf) -> bool:
    """Return whether a nested value identifies an object of an unknown kind."""
    return bool(set(leaf.own_words) & _PLAIN_ID_WORDS) and len(leaf.path) > 1


def _find_rule(stable: Sequence[Leaf], messages: Messages) -> Leaf | None:
    """Return the identifier or the name of the rule, or a text without a state or numbers."""
    is_code = any(_CODE_WORDS & set(leaf.own_words) for leaf in messages.leaves)
    rated = [
        (cost + leaf.depth, leaf)
        for leaf in stable
        if not (is_code and {"title", "subject"} & set(leaf.own_words))
        and (cost := _rate_rule(leaf, messages)) is not None
    ]
    return min(rated, key=lambda each: each[0])[1] if rated else None


def _rate_rule(leaf: Leaf, messages: Messages) -> float | None:
    """Return the cost of using a value as the rule's name, excluding its depth, or None."""
    own = set(leaf.own_words)
    is_named = bool(own & (_ID_WORDS | _NAME_WORDS))
    is_rule = bool((own | set(leaf.words[-2:])) & _RULE_WORDS)
    named = find_state(leaf.value)
    has_state = named is not None and split_words(leaf.text)[-1] == named.word
    is_single = leaf.thing in _OCCURRENCE_WORDS and _looks_random(leaf)
    is_id = leaf.words == ("id",) and (messages.others or _is_word(leaf))
    is_text = leaf.words == ("name",) or bool(own & {"message", "msg", "text"} and _is_fixed(leaf))
    is_other = is_object(leaf) or own & _OTHER_KINDS or (is_single and not messages.others)
    costs = (
        (-3, _is_vulnerability(leaf)),
        (6, own in _KIND_KEYS and not has_state),
        (0 if own & _ID_WORDS else 0.5, not is_other and is_rule and is_named),
        (2, not is_other and ((is_rule and not has_state) or is_id)),
        (1.5, _is_message_code(leaf)),
        (2, own == {"category"} and bool(set(leaf.words[-2:]) & _FAULT_WORDS)),
        (2, not is_other and own & _FAULT_WORDS and (is_named or "code" in own) and not has_state),
        (3, not is_other and "reason" in own and _is_fixed(leaf)),
        (4, not is_other and is_text),
    )
    is_flag = leaf.value in (0, 1) and not is_named
    if is_plain_state(leaf.value) or leaf.is_link or "command" in own or is_flag:
        return None
    return min((cost for cost, applies in costs if applies), default=None)


def _is_vulnerability(leaf: Leaf) -> bool:
    """Return whether a value identifies the only vulnerability that a message is about."""
    is_id = _ID_WORDS & set(leaf.own_words) and _VULNERABILITY_WORDS & set(leaf.words[-2:])
    is_known = bool(is_id or _VULNERABILITY_ID.fullmatch(leaf.text))
    return is_known and not any(isinstance(key, int) for key in leaf.path)


def _is_word(leaf: Leaf) -> bool:
    """Return whether an identifier is a word that a person chose, such as the name of a rule."""
    return any(each.isalpha() for each in leaf.text) and not _looks_random(leaf)


def _is_fixed(leaf: Leaf) -> bool:
    """Return whether a text is probably the same in each message: it has no numbers or states."""
    return not any(each.isdigit() for each in leaf.text) and not find_state_in_sentence(leaf.text)


def is_object(leaf: Leaf) -> bool:
    """Return whether a value names or identifies an object, such as a host."""
    words = leaf.words[-2:]
    if (
        "text" in leaf.own_words or set(leaf.own_words) & STATE_WORDS.keys()
    ):  # Such a key does not name an object: for example, it lists failed locations.
        return False
    if leaf.is_link and _UNIX_TIME.search(leaf.text):  # The link contains the time of the message.
        return False
    if leaf.is_link and not set(leaf.words) <= LINK_OWNERS | _LINK_WORDS:
        return False
    is_id_or_name = bool(set(leaf.own_words) & (_ID_WORDS | _NAME_WORDS | {"url", "address", "ip"}))
    last_is_object = bool(leaf.own_words) and leaf.own_words[-1] in _OBJECT_WORDS
    return last_is_object or (is_id_or_name and bool(set(words) & _OBJECT_WORDS))


def list_subject_leaves(leaves: Sequence[Leaf]) -> Sequence[Leaf]:
    """Return the values that name the object and the rule in a message, or else its text.

    Identifiers of alerts are excluded, because they can differ between messages. The result is
    empty if only an object is named.
    """
    named = [leaf for leaf in leaves if is_object(leaf) or _is_rule(leaf)]
    named = [leaf for leaf in named if _is_name_of_subject(leaf)]
    objects = [leaf for leaf in named if is_object(leaf)]
    rules = [leaf for leaf in named if not is_object(leaf)]
    texts = [leaf for leaf in leaves if leaf.own_words[-1:] in _TEXT_KEYS and leaf.text]
    return [*objects, *(rules or texts)] if rules or texts else []


def _is_rule(leaf: Leaf) -> bool:
    words, last = set(leaf.words[-2:]), set(leaf.own_words[-1:])
    is_name = bool(last & (_RULE_WORDS | _NAME_WORDS | _ID_WORDS))
    return leaf.words == ("name",) or bool(words & _RULE_WORDS and is_name)


def _is_name_of_subject(leaf: Leaf) -> bool:
    """Return whether a value or an array of names is not specific to one alert."""
    own, words = set(leaf.own_words), set(leaf.words[-2:])
    is_id = bool(own & _ID_WORDS)
    is_of_alert = bool(words & _ALERT_WORDS) and (leaf.is_link or is_id)
    is_number = isinstance(leaf.value, int) and not is_id
    if is_of_alert or is_number or leaf.is_uuid or is_plain_state(leaf.value):
        return False
    return isinstance(leaf.value, list) or _is_identifier(leaf)


def _drop_repeated(hosts: Sequence[Leaf], objects: Sequence[Leaf]) -> list[Leaf]:
    """Return one leaf for each different value and each object, the least nested leaves first.

    The affected hosts come first. Other addresses are only used if no object has a name.
    """
    named = [leaf for leaf in objects if leaf.own_words[-1] not in _ADDRESS_WORDS]
    by_depth = sorted(named or objects, key=lambda leaf: (leaf.depth, leaf.is_link))
    ordered = [*hosts, *by_depth]
    values: dict[str, Leaf] = {}
    for leaf in ordered:
        values.setdefault(str(leaf.value).casefold(), leaf)
    found: dict[tuple[object, ...], Leaf] = {}
    for leaf in values.values():
        kind = frozenset(leaf.own_words) - _PLAIN_ID_WORDS - _NAME_WORDS
        found.setdefault((leaf.path[:-1], kind), leaf)
    return list(found.values())
