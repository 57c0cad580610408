"""Words in payload keys, grouped by the kind of object that the value of the key identifies."""

import re

from domain.alerts.recognition.key_splitting import parse_word_set

KEY_WORDS = ("fingerprint", "dedup", "dedupe", "deduplication", "alias")
ALERT_WORDS = parse_word_set(
    "alert incident issue problem alarm violation outage case ticket investigation"
)
#: Words in keys that are used for grouping. Unless the key also contains `key`, an aggregation is
#: the statistic of a metric.
GROUP_WORDS = ALERT_WORDS | parse_word_set("group aggreg aggregation")
RULE_WORDS = parse_word_set(
    "rule check monitor trigger policy condition test service search job query plugin "
    "alertname alert alarm sensor item slo subject title workflow pipeline definition "
    "scenario component metric budget dag flow task function schedule risk builder"
)
#: Kinds of objects whose name or code is the name of a rule.
FAULT_WORDS = parse_word_set("issue problem event fault error detection finding")
#: Words in keys for the identifier of a vulnerability, and the pattern of the most common
#: identifiers.
VULNERABILITY_WORDS = parse_word_set("vulnerability vuln cve advisory")
VULNERABILITY_ID = re.compile(r"(CVE|GHSA)-[\w-]+", re.IGNORECASE)
#: Pattern of message codes, such as `PSU0003` or `Environmental.1.1.TemperatureNormal`.
MESSAGE_CODE = re.compile(r"[A-Z]{2,6}\d{1,4}|(\w+\.)*[A-Z][A-Za-z]+")
#: Words in the keys of messages about code, in which the title is a commit message.
CODE_WORDS = parse_word_set("commit branch build deploy")
#: Words in keys whose value is a type. Such a value names the rule only if no other value does.
ALERT_TYPE_KEYS = ({"alert", "type"}, {"alarm", "type"}, {"event", "type"})
KIND_KEYS = ({"type"}, *ALERT_TYPE_KEYS, {"kind"}, {"category"})
#: Keys for the kind of a problem, most specific first. The last keys often have the same value in
#: all messages of a tool.
PROBLEM_KEYS = (
    *({word, "type"} for word in ("problem", "issue", "failure", "fault", "error")),
    *({word, "code"} for word in ("error", "problem", "fault", "alarm", "alert")),
    *({"code"}, {"problem"}, {"failure"}, {"fault"}, {"parameter"}, {"metric"}),
    *({"alert", "type"}, {"alarm", "type"}, {"event", "type"}, {"event"}),
    *({"type"}, {"kind"}, {"category"}),
)
OTHER_KINDS = parse_word_set(
    "type kind category method protocol status state source text url level severity priority"
)
#: Words in keys for credentials, and words with which the word `key` names a credential.
SECRET_WORDS = parse_word_set(
    "token secret password passphrase credential signature authorization webhook"
)
SECRET_KEY_WORDS = parse_word_set("api access auth routing integration license private signing")
OBJECT_WORDS = parse_word_set(
    "host hostname ident queue instance node server machine device entity resource pod target "
    "address ip fqdn url interface disk mount mountpoint filesystem container vm cluster region "
    "zone namespace object site location asset website domain database queue endpoint cpu project "
    "repository repo branch ref workspace dataset table column bucket volume topic broker ap "
    "switch router gateway agent probe replica workload share pool datastore vm unit tunnel peer "
    "certificate domain originator backup subscriber appliance hypervisor sensor application app "
    "service path plan printer camera"
)
#: Words in keys for the parameters of a job. A parameter does not name the affected object.
PARAMETER_WORDS = parse_word_set("param parameter argument variable")
ENTITY_WORDS = parse_word_set("entity resource target object asset")
#: Words for objects that contain other objects.
AREA_WORDS = parse_word_set("cluster region zone namespace site location project workspace version")
#: Words for objects that contain other objects or that several problems share.
WIDE_WORDS = AREA_WORDS | parse_word_set("branch ref repository repo")
#: Words for the location that runs a check.
PROBE_WORDS = parse_word_set("location probe agent")
#: Kinds of rules that check one object.
CHECKED_WORDS = parse_word_set("test check monitor scenario slo sensor")
JOB_WORDS = parse_word_set("job task")
#: Words for rules that can apply to several checks.
GENERAL_WORDS = parse_word_set("policy alert alarm")
#: Words for rules that can apply to several kinds of problems.
BROAD_WORDS = parse_word_set("policy service")
#: Words for addresses of objects, which often also have a name.
ADDRESS_WORDS = parse_word_set("url address ip")
ID_WORDS = parse_word_set(
    "id uuid guid uid key identifier number ref reference arn urn crn rrn token serial"
)
PLAIN_ID_WORDS = ID_WORDS - parse_word_set("ref reference arn urn crn rrn")
NAME_WORDS = parse_word_set("name title slug label")
#: Kinds of objects that exist once for each alert. Other objects, such as networks and boards, have
#: the same identifier in several alerts.
OCCURRENCE_WORDS = parse_word_set(
    "event finding fault error signal detection occurrence object item series exception downtime"
)
#: Words for objects to which some tools assign a new number in each message about the same problem.
MESSAGE_WORDS = parse_word_set("alert alarm event detection finding signal")
LINK_WORDS = parse_word_set("url link")
TEXT_KEYS = tuple((word,) for word in ("message", "msg", "text", "summary", "description"))
