"""Finds the value in a payload that best fits a field of an alert.

The words of a key are compared with the phrases for the field, which are ordered from best to
worst. Each level of nesting and each additional word make a value less likely.
"""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from domain.alerts.parsing.mapping import AlertField
from domain.alerts.parsing.mapping_rules import normalize_word
from domain.alerts.parsing.payload_paths import PayloadPath, format_path
from domain.alerts.recognition.key_splitting import parse_word_set, split_words
from domain.alerts.recognition.leaves import GENERIC_WORDS, Leaf
from domain.alerts.recognition.severity_values import (
    KIND_WORDS,
    NO_VALUES,
    is_cvss_score,
    is_severity,
    is_severity_state,
    is_severity_word,
)
from domain.alerts.recognition.state_words import (
    FAILURE_WORDS,
    STATE_WORDS,
    is_plain_state,
)


class Confidence(StrEnum):
    """The certainty of a part of a proposal. Users should check parts that are unsure."""

    SURE = "sure"
    LIKELY = "likely"
    UNSURE = "unsure"


@dataclass(frozen=True, kw_only=True)
class FieldCriteria:
    """Criteria for a field's value: phrases for its key, and a function that checks the value."""

    #: Phrases that the words in a path can end with, best first.
    phrases: str
    #: Words that must be a whole key at the top level, because they are too general elsewhere.
    exact: str = ""
    fits: Callable[[Leaf], bool]
    #: True if the word `name` can follow the phrases, as in `host name`.
    is_name: bool = False


@dataclass(frozen=True, kw_only=True)
class FieldMatch:
    """A value that was found for a field, and the reason for the choice."""

    leaf: Leaf
    confidence: Confidence
    reason: str
    #: True if the value is the affected object.
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


#: Words in keys for a link to the monitored host.
LINK_OWNERS = parse_word_set(
    "host target monitor server endpoint site website entity check location"
)
#: Words that are not names.
NO_NAMES = NO_VALUES | parse_word_set("default global main current all any null n/a na undefined")
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
#: Words for machines that run the checks of a monitoring tool.
RUNNER_WORDS = parse_word_set("execution runner probe collector poller checker reporter executor")
#: Words for time zones in keys.
_ZONE_WORDS = parse_word_set("utc gmt iso")
_OFFSET = re.compile(r"(Z|[+-]\d\d:?\d\d)$")
#: Severity words with little meaning: many tools send them as the default priority.
_UNMARKED_SEVERITIES = parse_word_set("normal default")
#: Words that mark a key as the key of a host.
_HOST_WORDS = parse_word_set("host server target endpoint site website entity node device")
#: Kinds of objects whose links may lead to the monitoring tool or to code.
_OTHER_ENDS = parse_word_set("host server node device repository repo vcs webhook callback")
_HOME_PAGE = re.compile(
    r"https?://[^/?#]+(/+(admin|app|console|dashboard|home|index|login|ui)?\b)*(\.\w+)?[/?#]*",
    re.IGNORECASE,
)
#: Pattern of characters that occur in the names of machines, but not in the names of programs.
_MACHINE_SIGN = re.compile(r"[\d.:-]|localhost")
#: Kinds of objects whose host is the website of a program. Such a host is used only if no other
#: value names a host.
_SITE_WORDS = parse_word_set("application app site portal console")
#: Kinds of affected objects that are services and not hosts.
SERVICE_THINGS = parse_word_set(
    "application component connection package project repository service system"
)
_HOST_NAME = re.compile(r"[A-Za-z][A-Za-z0-9]*(?:[.-][A-Za-z0-9]+){1,8}(?::\d+)?")
_ADDRESS = re.compile(r"(https?://\S+|[\w-]+(\.[\w-]+)*\.[A-Za-z]{2,}|\d+(\.\d+){3})(:\d+)?/?")
_THING_WORDS = parse_word_set(
    "device rule monitor policy host node service project check trigger repository repo resource "
    "definition "
    "image application"
)
#: Words that follow the kind of an object in a key for the object's name.
_NAMING_WORDS = ("name", "label", "code", "ident", "identifier")
_RULE_NAME_KEYS = tuple((word, "name") for word in ("rule", "alert", "alarm", "check", "policy"))
#: Words in titles for the event that causes a message.
_EVENT_WORDS = parse_word_set(
    "started triggered opened created raised fired begun detected received occurred active open"
)
#: Keys for names of people.
_PERSON_KEYS = tuple((word, "name") for word in ("real", "first", "last", "full", "user", "sur"))
_MAX_TITLE = 150
_IDENTIFIER_WORDS = parse_word_set("id uuid guid uid code serial type kind")
#: Kinds of objects that can be named after a state, such as a check named `unreachable`.
_CHECKING_WORDS = parse_word_set("check monitor rule service job test sensor")
#: Kinds of objects whose title or name applies to many alerts.
_CLASSES = parse_word_set("category plugin")
#: Kinds of objects that have a random name, or are named after a commit or a version of the code.
_UNNAMED_THINGS = parse_word_set("run commit branch ref")


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
    is_other = leaf.object_word == "instance" and not _is_product(leaf)
    return _is_name(leaf) and not (leaf.is_resource_path or is_other)


def _is_product(leaf: Leaf) -> bool:
    """Return whether the name of an instance refers to a program and not to a machine."""
    return "instance" in leaf.own_words and not _MACHINE_SIGN.search(leaf.text)


def _is_title(leaf: Leaf) -> bool:
    has_letter = any(each.isalpha() for each in leaf.text)
    is_name = leaf.own_words[-1:] == ("name",) and leaf.object_word in _CHECKING_WORDS
    is_other = (is_plain_state(leaf.text) and not is_name) or leaf.object_word in _UNNAMED_THINGS
    is_other |= leaf.text.casefold() in NO_NAMES and not leaf.is_top_level
    is_other |= leaf.is_generic or leaf.own_words in _PERSON_KEYS
    is_other |= leaf.is_resource_path or GENERIC_WORDS.issuperset(split_words(leaf.text))
    is_other |= leaf.object_word in _CLASSES and leaf.own_words[-1:] in (("title",), ("name",))
    return has_letter and _is_text(leaf) and not (is_other or leaf.is_run_reason)


def _can_be_title(leaf: Leaf) -> bool:
    """Return whether a string can be a title and is not the name of a group of objects."""
    return _is_title(leaf) and not (set(leaf.words) & _SCOPE_WORDS)


def is_code(leaf: Leaf) -> bool:
    """Return whether a string is a lowercase word whose key is not a name, title or label."""
    is_named = leaf.own_words[-1:] in (("name",), ("title",), ("label",))
    return leaf.text.islower() and " " not in leaf.text and not is_named


def _is_event(leaf: Leaf) -> bool:
    """Return whether a top-level string describes an event in several words."""
    words = set(split_words(leaf.text))
    is_plain = words <= GENERIC_WORDS | STATE_WORDS.keys()
    return leaf.is_top_level and len(words) > 1 and not is_plain and _is_title(leaf)


def _names_only_event(leaf: Leaf) -> bool:
    """Return whether a title names only the start of an alert, as `Alert Started` does."""
    words = set(split_words(leaf.text))
    return bool(words & GENERIC_WORDS) and words <= GENERIC_WORDS | _EVENT_WORDS


def _is_multiword_title(leaf: Leaf) -> bool:
    is_short = " " in leaf.text and len(leaf.text) <= _MAX_TITLE and "\n" not in leaf.text
    return is_short and _can_be_title(leaf)


def _is_host(leaf: Leaf) -> bool:
    is_place = leaf.own_words[-1:] == ("location",) and not leaf.is_link
    is_listed = any(isinstance(key, int) for key in leaf.path)
    is_place |= is_listed and leaf.object_word in ("agent", "location", "probe")
    is_place |= leaf.belongs_to_run_part or not RUNNER_WORDS.isdisjoint(leaf.words[-2:])
    is_place |= leaf.is_generic or _is_product(leaf)
    is_pattern = "*" in leaf.text
    if is_place or is_pattern or leaf.text.casefold() in NO_NAMES | KIND_WORDS:
        return False
    return _is_name(leaf) or (leaf.is_link and bool(set(leaf.words) & LINK_OWNERS))


def _is_start_time(leaf: Leaf) -> bool:
    """Return whether a value is a time of the alert, not the creation time of a device or rule."""
    is_creation = bool(set(leaf.own_words) & _CREATION_WORDS)
    is_other = bool(set(leaf.own_words) & _PUBLICATION_WORDS)
    is_other |= is_creation and bool(set(leaf.words) & _THING_WORDS)
    return leaf.past_time is not None and not is_other


def _is_page_link(leaf: Leaf) -> bool:
    """Return whether a value is a link to a page other than the home page of a tool."""
    return leaf.is_link and not _HOME_PAGE.fullmatch(leaf.text)


#: Kinds of values by field, in the order in which values are chosen for the fields.
FIELD_KINDS: Mapping[AlertField, FieldCriteria] = {
    AlertField.SEVERITY: FieldCriteria(
        phrases="severity|severity level|priority|prio|urgency|criticality|level|importance|impact|"
        "alert level|log level|alert severity|severity name|severity label|priority name|"
        "risk|risk level|threat level|sev",
        fits=is_severity,
    ),
    AlertField.HOSTS: FieldCriteria(
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
    AlertField.TITLE: FieldCriteria(
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
    AlertField.DESCRIPTION: FieldCriteria(
        phrases="description|long description|details|detail|long message|message|body|output|"
        "plugin output|reason|summary|msg|text|explanation|full message|error message|error|info|"
        "note|comment",
        fits=lambda leaf: _is_text(leaf) and not leaf.is_run_reason,
    ),
    AlertField.START_TIME: FieldCriteria(
        phrases="start time|started at|start at|started|fired at|triggered at|opened at|"
        "created at|occurred at|down at|start|since|first seen|created|event time|timestamp|"
        "time stamp|down since|"
        "event at|alert time|date time|time|date",
        fits=_is_start_time,
    ),
    AlertField.END_TIME: FieldCriteria(
        phrases="end time|ended at|end at|resolved at|recovered at|closed at|cleared at|"
        "resolved time|closed time|end|ended|recovered|recover time|recovery time|recover at|"
        "cleared|clear time|clear at|up at|resolved|resolution time|deactivated at|deactivated",
        fits=lambda leaf: leaf.is_time or isinstance(leaf.value, str | None),
    ),
    AlertField.SERVICE: FieldCriteria(
        phrases="service|app|application|component|job|system|project|repository|repo|"
        "namespace|cluster|instance|process key|process",
        is_name=True,
        fits=_is_service,
    ),
    AlertField.MONITORING_TOOL: FieldCriteria(
        phrases="monitoring tool|tool|monitoring system", fits=_is_name
    ),
    AlertField.ENVIRONMENT: FieldCriteria(
        phrases="environment|environment name|env|deployment environment",
        exact="stage",
        fits=lambda leaf: bool(leaf.text) and _is_name(leaf),
    ),
    AlertField.RUNBOOK: FieldCriteria(
        phrases="run book|run book url|run book link|playbook|playbook url|playbook link|"
        "documentation url|documentation link|documentation|help url|help link|kb article|"
        "wiki url|wiki link|wiki|doc url|doc link",
        fits=_is_page_link,
    ),
    AlertField.SOURCE_URL: FieldCriteria(
        phrases="permalink|html url|web url|external url|external uri|url|uri|link|href|short link|"
        "console|deep link",
        fits=lambda leaf: _is_page_link(leaf) and _is_problem_link(leaf),
    ),
}
_PROBLEM_OWNERS = parse_word_set(
    "alert alarm event incident issue problem finding external permalink"
)
_OTHER_LINKS = parse_word_set(
    "edit silence mute ack acknowledge snooze unsubscribe api icon image logo picture chart"
)
_PROBLEM_WORDS = parse_word_set(
    "alert alarm incident issue problem finding event action link permalink detail external html "
    "web url uri href console view dashboard short deep result self "
    "build run pipeline job workflow attachment title"
)


def _is_problem_link(leaf: Leaf) -> bool:
    """Return whether a link leads to a problem, and not to an object or to the tool's interface."""
    words, own = set(leaf.words) - _PROBLEM_WORDS, set(leaf.own_words)
    return not words or bool(own & _PROBLEM_OWNERS and not own & _OTHER_LINKS)


def find_field_match(
    field: AlertField, leaves: Iterable[Leaf], taken: Collection[PayloadPath] = ()
) -> FieldMatch | None:
    """Return the value that best fits a field, or None."""
    kind = FIELD_KINDS[field]
    given = list(leaves)
    if field is AlertField.TITLE:
        paths = [leaf.path for leaf in given]
        given = [leaf for leaf in given if not _is_probable_object_name(leaf, paths)]
        given = [leaf for leaf in given if not _is_end_of_full_name(leaf, given)]
    if field is AlertField.SOURCE_URL:
        # A link to a host that the message names leads to the monitored object, not to the problem.
        names = " ".join(leaf.text for leaf in given if "://" not in leaf.text).casefold()
        given = [leaf for leaf in given if leaf.is_link]
        given = [leaf for leaf in given if leaf.text.split("/")[2].casefold() not in names]
    is_host = field is AlertField.HOSTS
    machines = [leaf for leaf in given if is_host and _SITE_WORDS.isdisjoint(leaf.words[:-1])]
    best = _find_best_leaf(kind, machines, taken) or _find_best_leaf(kind, given, taken)
    if best and field is AlertField.TITLE and is_code(best.leaf):
        # A text with several words is better than a code.
        return _find_best_leaf(replace(kind, fits=_is_multiword_title), given, taken) or best
    if best and field is AlertField.TITLE and _names_only_event(best.leaf):
        described = replace(FIELD_KINDS[AlertField.DESCRIPTION], fits=_is_multiword_title)
        better = _find_best_leaf(described, given, (*taken, best.leaf.path))
        return replace(better, confidence=Confidence.UNSURE) if better else best
    if is_host:
        is_unsure = best is None or best.confidence is Confidence.UNSURE
        best = (_find_address(given, taken) if is_unsure else None) or best
        return best and _prefer_host_name(best, given)
    if best is None and field is AlertField.TITLE:
        best = next(
            filter(
                None,
                (
                    _find_best_leaf(FieldCriteria(phrases=phrases, fits=fits), given, taken)
                    for fits in (_is_multiword_title, _can_be_title, _is_title)
                    for phrases in _FALLBACK_TITLES
                ),
            ),
            None,
        )
        is_name = best is not None and best.leaf.own_words[-1:] == ("name",)
        if best and is_name and (best.leaf.object_word in _PLACES or best.leaf.depth > 1):
            # The name of an event is better than the name of an object.
            best = (
                _find_best_leaf(FieldCriteria(phrases=_EVENTS, fits=_is_event), given, taken)
                or best
            )
        return best and replace(best, confidence=Confidence.UNSURE)
    return best


def _prefer_host_name(found: FieldMatch, leaves: Iterable[Leaf]) -> FieldMatch:
    """Return the name of a host instead of its identifier, if the payload contains the name."""
    leaf = found.leaf
    is_path = leaf.text.count("/") > 1 and not leaf.is_link
    if leaf.own_words[-1:] == ("id",) and len(leaf.path) > 1:
        beside = (each for each in leaves if each.path[:-1] == leaf.path[:-1] and _is_host(each))
        named = (each for each in beside if each.own_words in (("name",), ("display", "name")))
        return replace(found, leaf=next(named, leaf))
    return replace(found, confidence=Confidence.UNSURE) if leaf.is_uuid or is_path else found


def _find_address(leaves: Iterable[Leaf], taken: Collection[PayloadPath]) -> FieldMatch | None:
    """Return the least nested address whose key contains a word for hosts, or None."""
    found = [
        leaf
        for leaf in leaves
        if not (_HOST_WORDS.isdisjoint(leaf.words[-3:]) or leaf.describes_actor_or_past)
        and not (leaf.is_link and set(leaf.words) & _OTHER_ENDS)
        and leaf.path not in taken
        and _is_host(leaf)
        and all(_ADDRESS.fullmatch(str(each)) for each in _list_values(leaf.value))
    ]
    if not found:
        return None
    leaf = min(found, key=lambda each: each.depth)
    reason = f"“{leaf.path[-1]}” contains an address"
    return FieldMatch(leaf=leaf, confidence=Confidence.LIKELY, reason=reason)


def _list_values(value: object) -> list[object]:
    return value if isinstance(value, list) else [value]


def is_host_name(leaf: Leaf) -> bool:
    """Return whether a string looks like a host name, and its key does not name a problem."""
    is_other = leaf.object_word in _NOT_AFFECTED or set(leaf.own_words) & _IDENTIFIER_WORDS
    return bool(_HOST_NAME.fullmatch(leaf.text)) and not (is_other or leaf.is_time)


def _is_probable_object_name(leaf: Leaf, paths: Iterable[PayloadPath]) -> bool:
    """Return whether a plain name probably belongs to an object.

    Another key in the same object must name the rule.
    """
    is_plain = leaf.own_words == ("name",) and not set(leaf.words[:-1]) - KIND_WORDS
    if not is_plain or " " in leaf.text or not _is_host(leaf):
        return False
    beside = (path for path in paths if path[:-1] == leaf.path[:-1])
    return any(split_words(str(path[-1])) in _RULE_NAME_KEYS for path in beside)


def _is_end_of_full_name(leaf: Leaf, leaves: Iterable[Leaf]) -> bool:
    """Return whether a plain name is the last part of a repository's or project's full name."""
    ends = (each.text for each in leaves if each.object_word in _SCOPE_WORDS)
    return leaf.words == ("name",) and any(each.endswith(f"/{leaf.text}") for each in ends)


def find_affected_object(
    leaves: Sequence[Leaf], taken: Collection[PayloadPath]
) -> FieldMatch | None:
    """Return the name of the affected object, or None.

    An object whose key marks it as affected is preferred. Otherwise, the least nested object with a
    name and an identifier is used. If a message contains no links, the affected object can also be
    an agent.
    """
    identified = {
        each.object_word
        for each in leaves
        if set(each.own_words) & _IDENTIFIER_WORDS and each.own_words[-1] != "name"
    }
    found = [
        leaf
        for leaf in leaves
        if leaf.own_words[-1:] in (("name",), ("label",))
        and leaf.object_word in identified - _NOT_AFFECTED - _SCOPE_WORDS
        and not (leaf.describes_actor_or_past or leaf.path in taken)
        and _is_host(leaf)
    ]
    affected = [
        leaf
        for leaf in leaves
        if not (_AFFECTED_WORDS.isdisjoint(leaf.words) or leaf.describes_actor_or_past)
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
            if _is_probable_object_name(leaf, [*taken, *(each.path for each in leaves)])
        ]
    )
    if not found:
        # Some messages contain the results of each host under a key with the host's name.
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
            if leaf.is_top_level and leaf.own_words == ("agent",) and _is_host(leaf)
        ]
    if not found:
        return None
    found = [leaf for leaf in found if leaf.object_word not in _AREA_WORDS] or found
    leaf = min(found, key=lambda each: each.depth)
    is_only = all(each is leaf or each.depth > leaf.depth for each in found)
    return FieldMatch(
        leaf=leaf,
        confidence=Confidence.LIKELY if is_only and leaf.words != ("name",) else Confidence.UNSURE,
        reason=f"{format_path(leaf.path)} names {'what is affected' if affected else 'a thing'}",
        is_affected=True,
    )


def _find_best_leaf(
    kind: FieldCriteria, leaves: Iterable[Leaf], taken: Collection[PayloadPath]
) -> FieldMatch | None:
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
        return FieldMatch(leaf=leaf, confidence=Confidence.LIKELY, reason=f"the key is “{key}”")
    return FieldMatch(
        leaf=leaf, confidence=Confidence.UNSURE, reason=f"the nested key “{key}” fits best"
    )


def _compute_cost(leaf: Leaf, kind: FieldCriteria) -> float | None:
    """Return the cost of a key for a field, or None if the key does not fit.

    The key with the lowest cost fits best.
    """
    if leaf.describes_actor_or_past:
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
    if leaf.is_top_level and leaf.own_words in {(each,) for each in kind.exact.split()}:
        costs.append(_EXACT_COST)
    return min(costs, default=None)


def propose_severity_leaf(leaves: Sequence[Leaf]) -> FieldMatch | None:
    """Return the value of a severity key, a state that is also a severity, or a CVSS score."""
    top = [leaf for leaf in leaves if leaf.words == ("severity",) and leaf.is_word]
    given = [leaf for leaf in top if is_severity(leaf)] or leaves
    found = find_field_match(AlertField.SEVERITY, filter(is_severity_word, given))
    if found and normalize_word(found.leaf.text) not in _UNMARKED_SEVERITIES:
        return found
    for leaf in filter(is_severity_state, given):
        if found is None and "type" in leaf.own_words and leaf.text.casefold() in FAILURE_WORDS:
            continue
        reason = f"{leaf.text} is a severity"
        return FieldMatch(leaf=leaf, confidence=Confidence.LIKELY, reason=reason)
    found = find_field_match(AlertField.SEVERITY, given)
    scores = filter(is_cvss_score, leaves)
    if found is None and (score := max(scores, key=_get_cvss_version, default=None)):
        reason = f"{format_path(score.path)} is a CVSS score"
        return FieldMatch(leaf=score, confidence=Confidence.LIKELY, reason=reason)
    return found and replace(found, confidence=Confidence.UNSURE)


def _get_cvss_version(leaf: Leaf) -> int:
    return max((int(word) for word in leaf.own_words if word.isdecimal()), default=0)
