"""Finds the value in a payload that best fits a field of an alert.

The words of a key are compared with the phrases for the field, which are ordered from best to
worst. Each level of nesting and each additional word make a value less likely.
"""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from domain.alerts.reading.mapping import AlertField
from domain.alerts.reading.mapping_rules import is_rule_word, normalize_word
from domain.alerts.reading.paths import PayloadPath, format_path
from domain.alerts.reading.severity import USUAL_SEVERITY_WORDS, find_usual_severity_word
from domain.alerts.reading.times import is_readable_time
from domain.alerts.recognition.key_words import parse_word_set, split_words
from domain.alerts.recognition.leaves import GENERIC_WORDS, Leaf
from domain.alerts.recognition.states import (
    FAILURE_WORDS,
    RECOVERY_WORDS,
    STATE_WORDS,
    is_plain_state,
)


class Confidence(StrEnum):
    """The certainty of a proposal. Users are asked to check unsure parts."""

    SURE = "sure"
    LIKELY = "likely"
    UNSURE = "unsure"


@dataclass(frozen=True, kw_only=True)
class FieldKind:
    """Phrases for the keys from which a field is read, and the values that fit the field."""

    #: Phrases that the words in a path can end with, best first.
    phrases: str
    #: Words that must be a whole key at the top level, because they are too general elsewhere.
    exact: str = ""
    fits: Callable[[Leaf], bool]
    #: True if the word `name` can follow the phrases, as in `host name`.
    is_name: bool = False


@dataclass(frozen=True, kw_only=True)
class FoundLeaf:
    """A value that was found for a field, and the reason for the choice."""

    leaf: Leaf
    confidence: Confidence
    reason: str
    #: True if it is the affected object.
    is_affected: bool = False


#: Phrases for a title if no other value fits, best first.
_FALLBACK_TITLES = (
    "alert type|alarm type|problem type|issue type|issue|problem|friendly name|metric name|metric",
    "finding category|issue category|problem category|alert category|event category",
    "display name|target name|name|label",
    "cause|reason|description|details|content|error message|exception|error|body",
    "event type code|event type|type|event|context|headline text",
    "rule id|check id|job id|task id|dag id|flow id|pipeline id|workflow id|test id|code",
)

_EVENTS = "event type code|event type|type|event|action|reason"
_DEPTH_COST = 3
_WORD_COST = 2
_EXACT_COST = 4
_ZONE_BONUS = 0.1
#: Maximum cost of a value with the confidence `LIKELY`.
_LIKELY_COST = 14


#: Words in keys whose link is the address of the monitored host.
LINK_OWNERS = parse_word_set(
    "host target monitor server endpoint site website entity check location"
)
#: Words that are not names: words for a missing value, and words for kinds of objects.
_NO_VALUES = parse_word_set("none unknown")
NO_NAMES = _NO_VALUES | parse_word_set("default global main all any null n/a na undefined")
_KIND_WORDS = parse_word_set("alert incident issue problem event host service monitor check")
_SCOPE_WORDS = parse_word_set("network board space cluster page project repository region site")
#: Kinds of objects that contain the affected objects of several alerts.
_AREA_WORDS = parse_word_set("workspace environment folder location zone dashboard")
#: Kinds of objects whose name is the location of a problem, not its description.
_PLACES = _SCOPE_WORDS | _AREA_WORDS | parse_word_set("host server node device service app cluster")
#: Kinds of objects that are not affected by a problem although they have names and identifiers.
_NOT_AFFECTED = parse_word_set(
    "alert alarm incident issue problem event rule trigger condition policy search query metric "
    "notification feature project version definition error exception template feed cause group "
    "category run build execution environment check test workflow pipeline job plugin source tool "
    "provider vendor suite"
)
_AFFECTED_WORDS = parse_word_set("affected impacted compromised violating")
_CREATION_WORDS = parse_word_set("created create updated update modified")
_PUBLICATION_WORDS = parse_word_set("publication published disclosure disclosed modification")
#: Words for the machines that run the checks of a monitoring tool.
RUNNER_WORDS = parse_word_set("execution runner probe collector poller checker reporter executor")
#: Words for time zones in keys.
_ZONE_WORDS = parse_word_set("utc gmt iso")
_OFFSET = re.compile(r"(Z|[+-]\d\d:?\d\d)$")
#: Words in keys for which the state `error` is a severity. Elsewhere, it is the state of a failed
#: run.
_GRADED_OWNERS = parse_word_set("alert alarm event check monitor trigger")
#: Severities without much meaning, because many tools send them as the default priority.
_UNMARKED_SEVERITIES = parse_word_set("normal default")
#: Words that mark a key for hosts at any position in the key, and the pattern of a host's address.
_HOST_WORDS = parse_word_set("host server target endpoint site website entity node device")
#: Kinds of objects whose links may lead to the monitoring tool or to code.
_OTHER_ENDS = parse_word_set("host server node device repository repo vcs webhook callback")
_HOME_PAGE = re.compile(
    r"https?://[^/?#]+(/+(admin|app|console|dashboard|home|index|login|ui)?\b)*(\.\w+)?[/?#]*",
    re.IGNORECASE,
)
#: Characters that the names of machines contain, unlike the names of programs.
_MACHINE_SIGN = re.compile(r"[\d.:-]|localhost")
#: Kinds of objects whose host is the website of a program, unless no other value names a host.
_SITE_WORDS = parse_word_set("application app site portal console")
#: Kinds of affected objects that are services and not hosts.
SERVICE_THINGS = parse_word_set(
    "application component connection package project repository service system"
)
_HOST_NAME = re.compile(r"[A-Za-z][A-Za-z0-9]*(?:[.-][A-Za-z0-9]+){1,8}(?::\d+)?")
_ADDRESS = re.compile(r"(https?://\S+|[\w-]+(\.[\w-]+)*\.[A-Za-z]{2,}|\d+(\.\d+){3})(:\d+)?/?")
_THING_WORDS = parse_word_set(
    "device rule monitor policy host node service project check trigger repository repo resource "
    "image application"
)
#: Words that follow an object's kind in the key for its name.
_NAMING_WORDS = ("name", "label", "code", "ident", "identifier")
_RULE_NAME_KEYS = tuple((word, "name") for word in ("rule", "alert", "alarm", "check", "policy"))
_MAX_TITLE = 150
_IDENTIFIER_WORDS = parse_word_set("id uuid guid uid code serial type kind")
#: Kinds of objects whose name can also be a word for a state, such as `unreachable`.
_CHECKING_WORDS = parse_word_set("check monitor rule service job test sensor")
#: Kinds of objects that have a random name, or are named after a commit or a version of the code.
_UNNAMED_THINGS = parse_word_set("run commit branch ref")
#: Words in keys whose texts are not severities.
_SENTENCE_WORDS = parse_word_set("message msg text description comment reason")


def _is_text(leaf: Leaf) -> bool:
    """Return whether a value is human-readable text."""
    is_other = leaf.is_link or leaf.is_uuid or leaf.is_time or leaf.text.isdecimal()
    return bool(leaf.text) and not is_other


def _is_name(leaf: Leaf) -> bool:
    """Return whether a value is a name or an array of names."""
    if set(leaf.own_words) & {"tag", "label"} or leaf.text.casefold() in NO_NAMES:
        return False
    if isinstance(leaf.value, list):
        return bool(leaf.value) and all(isinstance(each, str) for each in leaf.value)
    return _is_text(leaf) and "\n" not in leaf.text


def _is_service(leaf: Leaf) -> bool:
    is_other = leaf.thing == "instance" and not _is_product(leaf)
    return _is_name(leaf) and not (leaf.is_resource_path or is_other)


def _is_product(leaf: Leaf) -> bool:
    """Return whether the name of an instance is the name of a program and not of a machine."""
    return "instance" in leaf.own_words and not _MACHINE_SIGN.search(leaf.text)


def _is_title(leaf: Leaf) -> bool:
    has_letter = any(each.isalpha() for each in leaf.text)
    is_name = leaf.own_words[-1:] == ("name",) and leaf.thing in _CHECKING_WORDS
    is_other = (is_plain_state(leaf.text) and not is_name) or leaf.thing in _UNNAMED_THINGS
    is_other |= leaf.is_resource_path or GENERIC_WORDS.issuperset(split_words(leaf.text))
    return has_letter and _is_text(leaf) and not is_other


def _is_own_title(leaf: Leaf) -> bool:
    """Return whether a text can be a title and does not name a group of objects."""
    return _is_title(leaf) and not (set(leaf.words) & _SCOPE_WORDS)


def is_code(leaf: Leaf) -> bool:
    """Return whether a text is a lowercase word whose key is not a name, title or label."""
    is_named = leaf.own_words[-1:] in (("name",), ("title",), ("label",))
    return leaf.text.islower() and " " not in leaf.text and not is_named


def _is_event(leaf: Leaf) -> bool:
    """Return whether a top-level text describes an event in several words."""
    words = set(split_words(leaf.text))
    is_plain = words <= GENERIC_WORDS | STATE_WORDS.keys()
    return leaf.is_top and len(words) > 1 and not is_plain and _is_title(leaf)


def _is_short_text(leaf: Leaf) -> bool:
    is_short = " " in leaf.text and len(leaf.text) <= _MAX_TITLE and "\n" not in leaf.text
    return is_short and _is_own_title(leaf)


def _is_host(leaf: Leaf) -> bool:
    is_place = leaf.own_words[-1:] == ("location",) and not leaf.is_link
    is_listed = any(isinstance(key, int) for key in leaf.path)
    is_place |= is_listed and leaf.thing in ("agent", "location", "probe")
    is_place |= leaf.is_of_part or not RUNNER_WORDS.isdisjoint(leaf.words[-2:])
    is_place |= leaf.is_generic or _is_product(leaf)
    if is_place or leaf.text.casefold() in NO_NAMES | _KIND_WORDS:
        return False
    return _is_name(leaf) or (leaf.is_link and bool(set(leaf.words) & LINK_OWNERS))


def _is_start(leaf: Leaf) -> bool:
    """Return whether a value is a time of the alert, not the creation time of a device or rule."""
    is_creation = bool(set(leaf.own_words) & _CREATION_WORDS)
    is_other = bool(set(leaf.own_words) & _PUBLICATION_WORDS)
    is_other |= is_creation and bool(set(leaf.words) & _THING_WORDS)
    return leaf.is_time and is_readable_time(leaf.value) and not is_other


def _is_document(leaf: Leaf) -> bool:
    """Return whether a value is a link that leads further than to the home page of a tool."""
    return leaf.is_link and not _HOME_PAGE.fullmatch(leaf.text)


def _is_severity(leaf: Leaf) -> bool:
    text = normalize_word(leaf.value)
    is_other = leaf.is_time or set(leaf.own_words) & _SENTENCE_WORDS or not is_rule_word(text)
    is_word = (
        not isinstance(leaf.value, float)
        and any(each.isalnum() for each in text)
        and text not in _NO_VALUES
    )
    return leaf.is_scalar and is_word and not is_other


#: Kinds of values by field, in the order in which values are chosen for the fields.
FIELD_KINDS: Mapping[AlertField, FieldKind] = {
    AlertField.SEVERITY: FieldKind(
        phrases="severity|severity level|priority|prio|urgency|criticality|level|importance|impact|"
        "alert level|log level|alert severity|severity name|severity label|priority name|"
        "risk|risk level|threat level|sev",
        fits=_is_severity,
    ),
    AlertField.HOSTS: FieldKind(
        phrases="host|fqdn|node|instance|server|machine|device|impacted entity|affected entity|"
        "managed entity|entity|pod|target|entity source|resource arn|resource|monitor url|"
        "monitor address|site url|website url|target url|"
        "host name and port|check url|endpoint url|ip address|address|ip|"
        "vm|virtual machine|item name|object name|originator|agent name|ap|dataset|database|"
        "table name|switch|volume|bucket|queue|domain|location|dst ip|ip dst|src ip|srcip|"
        "endpoint|asset|station|terminal|equipment|appliance|gateway|router|sensor|"
        "ident|entity id|device id|serial|serial number|instance id|host id|node id|server id|"
        "resource id|arn|crn|urn|server url|host url",
        is_name=True,
        fits=_is_host,
    ),
    AlertField.TITLE: FieldKind(
        phrases="title|alert title|incident title|incident name|alert name|summary|subject|"
        "headline|control name|rule name|check name|monitor name|alert definition name|"
        "problem title|problem name|trigger name|condition name|event name|alarm name|"
        "issue title|issue name|fault name|finding title|"
        "finding name|detection name|search name|policy name|test name|"
        "job name|task name|workflow name|"
        "pipeline name|event title|service description|service desc|short message|message|msg|"
        "check|alarm|alert|monitor|rule|text",
        exact="name label",
        fits=_is_title,
    ),
    AlertField.DESCRIPTION: FieldKind(
        phrases="description|long description|details|detail|long message|message|body|output|"
        "plugin output|reason|summary|msg|text|explanation|full message|error message|error|info|"
        "note|comment",
        fits=_is_text,
    ),
    AlertField.START_TIME: FieldKind(
        phrases="start time|started at|start at|started|fired at|triggered at|opened at|"
        "created at|occurred at|start|since|first seen|created|event time|timestamp|time stamp|"
        "event at|alert time|date time|time|date",
        fits=_is_start,
    ),
    AlertField.END_TIME: FieldKind(
        phrases="end time|ended at|end at|resolved at|recovered at|closed at|cleared at|"
        "resolved time|closed time|end|ended|recovered|recover time|recovery time|recover at|"
        "cleared|clear time|clear at|resolved|resolution time",
        fits=lambda leaf: leaf.is_time or isinstance(leaf.value, str | None),
    ),
    AlertField.SERVICE: FieldKind(
        phrases="service|app|application|component|job|system|project|repository|repo|"
        "namespace|cluster|instance",
        is_name=True,
        fits=_is_service,
    ),
    AlertField.MONITORING_TOOL: FieldKind(
        phrases="monitoring tool|tool|monitoring system", fits=_is_name
    ),
    AlertField.ENVIRONMENT: FieldKind(
        phrases="environment|environment name|env|deployment environment",
        exact="stage",
        fits=lambda leaf: bool(leaf.text) and _is_name(leaf),
    ),
    AlertField.RUNBOOK: FieldKind(
        phrases="runbook|runbook url|runbook link|run book|playbook|playbook url|playbook link|"
        "documentation url|documentation link|documentation|help url|help link|kb article|"
        "wiki url|wiki link|wiki|doc url|doc link",
        fits=_is_document,
    ),
}
#: Links to the problem in the tool. They are used if there is no link to a runbook.
_PROBLEM_LINKS = FieldKind(
    phrases="permalink|html url|web url|external url|external uri|url|uri|link|href|short link|"
    "console|deep link",
    fits=lambda leaf: _is_document(leaf) and _is_problem_link(leaf),
)
_PROBLEM_OWNERS = parse_word_set(
    "alert alarm event incident issue problem finding external permalink"
)
_OTHER_LINKS = parse_word_set(
    "edit silence mute ack acknowledge snooze unsubscribe api icon image logo picture chart"
)
_PROBLEM_WORDS = parse_word_set(
    "alert alarm incident issue problem finding event action link permalink detail external html "
    "web url uri href console view dashboard short deep result self "
    "build run pipeline job workflow"
)


def _is_problem_link(leaf: Leaf) -> bool:
    """Return whether a link leads to a problem, and not to an object or to the tool's interface."""
    words, own = set(leaf.words) - _PROBLEM_WORDS, set(leaf.own_words)
    return not words or bool(own & _PROBLEM_OWNERS and not own & _OTHER_LINKS)


def find_field(
    field: AlertField, leaves: Iterable[Leaf], taken: Collection[PayloadPath] = ()
) -> FoundLeaf | None:
    """Return the value that best fits a field, or None."""
    kind = FIELD_KINDS[field]
    given = list(leaves)
    if field is AlertField.TITLE:
        paths = [leaf.path for leaf in given]
        given = [leaf for leaf in given if not _is_beside_rule(leaf, paths)]
        given = [leaf for leaf in given if not _names_scope(leaf, given)]
    is_host = field is AlertField.HOSTS
    machines = [leaf for leaf in given if is_host and _SITE_WORDS.isdisjoint(leaf.words[:-1])]
    best = _find_best(kind, machines, taken) or _find_best(kind, given, taken)
    if best is None and field is AlertField.RUNBOOK:
        # A link to a host that the message names leads to the monitored object.
        names = " ".join(leaf.text for leaf in given if "://" not in leaf.text).casefold()
        links = [leaf for leaf in given if leaf.is_link]
        links = [leaf for leaf in links if leaf.text.split("/")[2].casefold() not in names]
        return _find_best(_PROBLEM_LINKS, links, taken)
    if best and field is AlertField.TITLE and is_code(best.leaf):
        # A text with several words is better than a code.
        return _find_best(replace(kind, fits=_is_short_text), given, taken) or best
    if is_host:
        is_unsure = best is None or best.confidence is Confidence.UNSURE
        best = (_find_address(given, taken) if is_unsure else None) or best
        return best and _name_host(best, given)
    if best is None and field is AlertField.TITLE:
        best = next(
            filter(
                None,
                (
                    _find_best(FieldKind(phrases=phrases, fits=fits), given, taken)
                    for fits in (_is_short_text, _is_own_title, _is_title)
                    for phrases in _FALLBACK_TITLES
                ),
            ),
            None,
        )
        if best and best.leaf.own_words[-1:] == ("name",) and best.leaf.thing in _PLACES:
            # The name of an event is better than the name of an object.
            best = _find_best(FieldKind(phrases=_EVENTS, fits=_is_event), given, taken) or best
        return best and replace(best, confidence=Confidence.UNSURE)
    return best


def _name_host(found: FoundLeaf, leaves: Iterable[Leaf]) -> FoundLeaf:
    """Return the name of a host instead of its identifier, if the payload contains the name."""
    leaf = found.leaf
    is_path = leaf.text.count("/") > 1 and not leaf.is_link
    if leaf.own_words[-1:] == ("id",) and len(leaf.path) > 1:
        beside = (each for each in leaves if each.path[:-1] == leaf.path[:-1] and _is_host(each))
        named = (each for each in beside if each.own_words in (("name",), ("display", "name")))
        return replace(found, leaf=next(named, leaf))
    return replace(found, confidence=Confidence.UNSURE) if leaf.is_uuid or is_path else found


def _find_address(leaves: Iterable[Leaf], taken: Collection[PayloadPath]) -> FoundLeaf | None:
    """Return the least nested address whose key contains a word for hosts, or None."""
    found = [
        leaf
        for leaf in leaves
        if not (_HOST_WORDS.isdisjoint(leaf.words[-3:]) or leaf.is_about_other)
        and not (leaf.is_link and set(leaf.words) & _OTHER_ENDS)
        and leaf.path not in taken
        and _is_host(leaf)
        and all(_ADDRESS.fullmatch(str(each)) for each in _list_values(leaf.value))
    ]
    if not found:
        return None
    leaf = min(found, key=lambda each: each.depth)
    reason = f"“{leaf.path[-1]}” contains an address"
    return FoundLeaf(leaf=leaf, confidence=Confidence.LIKELY, reason=reason)


def _list_values(value: object) -> list[object]:
    return value if isinstance(value, list) else [value]


def is_host_name(leaf: Leaf) -> bool:
    """Return whether a text looks like the name of a host, and its key does not name a problem."""
    is_other = leaf.thing in _NOT_AFFECTED or set(leaf.own_words) & _IDENTIFIER_WORDS
    return bool(_HOST_NAME.fullmatch(leaf.text)) and not (is_other or leaf.is_time)


def _is_beside_rule(leaf: Leaf, paths: Iterable[PayloadPath]) -> bool:
    """Return whether a plain name is probably an object's, because another key names the rule."""
    is_plain = leaf.own_words == ("name",) and not set(leaf.words[:-1]) - _KIND_WORDS
    if not is_plain or " " in leaf.text or not _is_host(leaf):
        return False
    beside = (path for path in paths if path[:-1] == leaf.path[:-1])
    return any(split_words(str(path[-1])) in _RULE_NAME_KEYS for path in beside)


def _names_scope(leaf: Leaf, leaves: Iterable[Leaf]) -> bool:
    """Return whether a plain name is the end of the full name of a repository or project."""
    ends = (each.text for each in leaves if each.thing in _SCOPE_WORDS)
    return leaf.words == ("name",) and any(each.endswith(f"/{leaf.text}") for each in ends)


def find_affected(leaves: Sequence[Leaf], taken: Collection[PayloadPath]) -> FoundLeaf | None:
    """Return the name of the affected object, or None.

    An object whose key marks it as affected is preferred. Otherwise, the least nested object with a
    name and an identifier is used. Messages without links can also name an agent.
    """
    identified = {
        each.thing
        for each in leaves
        if set(each.own_words) & _IDENTIFIER_WORDS and each.own_words[-1] != "name"
    }
    found = [
        leaf
        for leaf in leaves
        if leaf.own_words[-1:] in (("name",), ("label",))
        and leaf.thing in identified - _NOT_AFFECTED - _SCOPE_WORDS
        and not (leaf.is_about_other or leaf.path in taken)
        and _is_host(leaf)
    ]
    affected = [
        leaf
        for leaf in leaves
        if not (_AFFECTED_WORDS.isdisjoint(leaf.words) or leaf.is_about_other)
        and (leaf.own_words[-1:] == ("name",) or set(leaf.own_words) & _AFFECTED_WORDS)
        and leaf.path not in taken
        and _is_host(leaf)
    ]
    found = (
        affected
        or found
        or [
            leaf
            for leaf in leaves
            if _is_beside_rule(leaf, [*taken, *(each.path for each in leaves)])
        ]
    )
    if not found:
        # The results of each host are in an object under its name.
        listed = [leaf.path for leaf in leaves if split_words(str(leaf.path[0])) == ("host",)]
        hosts = {path[1] for path in listed if len(path) > 2}  # noqa: PLR2004
        found = [leaf for leaf in leaves if leaf.text in hosts and is_host_name(leaf)]
    if not found:
        # A host name is often repeated, for example in a tag and in a field. Names of metrics
        # rarely contain digits.
        texts = Counter(leaf.text for leaf in leaves if is_host_name(leaf))
        repeated = [text for text in texts if texts[text] > 1 and any(map(str.isdigit, text))]
        found = [leaf for leaf in leaves if [leaf.text] == repeated and is_host_name(leaf)]
    if not found and not any(leaf.is_link for leaf in leaves):
        # In messages about URLs, the agent is only the location that runs the check.
        found = [
            leaf
            for leaf in leaves
            if leaf.is_top and leaf.own_words == ("agent",) and _is_host(leaf)
        ]
    if not found:
        return None
    found = [leaf for leaf in found if leaf.thing not in _AREA_WORDS] or found
    leaf = min(found, key=lambda each: each.depth)
    is_only = all(each is leaf or each.depth > leaf.depth for each in found)
    return FoundLeaf(
        leaf=leaf,
        confidence=Confidence.LIKELY if is_only and leaf.words != ("name",) else Confidence.UNSURE,
        reason=f"{format_path(leaf.path)} names {'what is affected' if affected else 'a thing'}",
        is_affected=True,
    )


def _find_best(
    kind: FieldKind, leaves: Iterable[Leaf], taken: Collection[PayloadPath]
) -> FoundLeaf | None:
    found = [
        (cost, position, leaf)
        for position, leaf in enumerate(leaves)
        if leaf.path not in taken
        and kind.fits(leaf)
        and (cost := _compute_cost(leaf, kind)) is not None
    ]
    if not found:
        return None
    cost, _, leaf = min(found, key=lambda each: each[:2])
    key = leaf.path[-1]
    if cost <= _LIKELY_COST:
        return FoundLeaf(leaf=leaf, confidence=Confidence.LIKELY, reason=f"the key is “{key}”")
    return FoundLeaf(
        leaf=leaf, confidence=Confidence.UNSURE, reason=f"the nested key “{key}” fits best"
    )


def _compute_cost(leaf: Leaf, kind: FieldKind) -> float | None:
    """Return the cost of a key for a field, or None if the key does not fit.

    The key with the lowest cost fits best.
    """
    if leaf.is_about_other:
        return None
    costs = []
    is_named = kind.is_name and len(leaf.words) > 1 and leaf.words[-1] in _NAMING_WORDS
    words = leaf.words[:-1] if is_named else leaf.words
    own, bonus = set(leaf.own_words), 0.0
    if leaf.is_time and (own & _ZONE_WORDS or _OFFSET.search(leaf.text)):
        # A time with a time zone is preferred.
        words, own = tuple(each for each in words if each not in _ZONE_WORDS), own - _ZONE_WORDS
        bonus = _ZONE_BONUS
    for rank, phrase in enumerate(kind.phrases.split("|")):
        wanted = tuple(phrase.split())
        if wanted in (words[-len(wanted) :], leaf.words[-len(wanted) :]):
            more = len(own - set(wanted) - {"name", "display", "friendly"})
            costs.append(rank / 4 + _DEPTH_COST * leaf.depth + _WORD_COST * more - bonus)
    if leaf.is_top and leaf.own_words in {(each,) for each in kind.exact.split()}:
        costs.append(_EXACT_COST)
    return min(costs, default=None)


def propose_severity_leaf(leaves: Sequence[Leaf]) -> FoundLeaf | None:
    """Return the value of a severity key, or a state that is also a severity."""
    top = [leaf for leaf in leaves if leaf.words == ("severity",) and leaf.is_word]
    given = [leaf for leaf in top if _is_severity(leaf)] or leaves
    found = find_field(AlertField.SEVERITY, filter(_is_severity_word, given))
    if found and normalize_word(found.leaf.text) not in _UNMARKED_SEVERITIES:
        return found
    for leaf in filter(_is_graded_state, given):
        if found is None and "type" in leaf.own_words and leaf.text.casefold() in FAILURE_WORDS:
            continue
        reason = f"{leaf.text} is a severity"
        return FoundLeaf(leaf=leaf, confidence=Confidence.LIKELY, reason=reason)
    found = find_field(AlertField.SEVERITY, given)
    return found and replace(found, confidence=Confidence.UNSURE)


def _is_graded_state(leaf: Leaf) -> bool:
    """Return whether a value is a state that is also a severity, such as `warning`."""
    own, word = set(leaf.own_words), normalize_word(leaf.text)
    is_state = bool(own & {"state", "status", "condition", "type"})
    is_graded = " " not in word and "type" not in own and _is_severity_word(leaf)
    # The state `error` of a run is not a severity.
    is_failure = word in FAILURE_WORDS and not (word == "error" and own & _GRADED_OWNERS)
    is_other = leaf.is_about_other or is_failure or word in _KIND_WORDS
    is_word = (word in USUAL_SEVERITY_WORDS or is_graded) and word not in RECOVERY_WORDS
    return is_state and is_word and not is_other and _is_severity(leaf)


def _is_severity_word(leaf: Leaf) -> bool:
    """Return whether a value is a known word for a severity. Numbers have no common scale."""
    return find_usual_severity_word(leaf.text) is not None
