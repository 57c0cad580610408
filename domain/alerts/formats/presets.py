"""Predefined mappings for the bodies that well-known monitoring tools post to HTTP endpoints.

Keys and values are taken from the documentation of each tool. If several presets match a body, the
first match is used. Paths use dot notation; a number in a path is an array index.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from domain.alerts.formats.base import MonitoringTool
from domain.alerts.reading.incoming import Severity
from domain.alerts.reading.mapping import AlertField, FieldMapping
from domain.alerts.reading.mapping_rules import MappingRules, Operator, PayloadCondition, ValueJoin
from domain.alerts.reading.paths import parse_dotted_path

#: Path, operator, and comma-separated words of a rule.
_PresetRule = tuple[str, Operator, str]


@dataclass(frozen=True, kw_only=True)
class Preset(MonitoringTool):
    """A tool that is supported by a predefined mapping."""

    #: Paths for each field, by field name. Alternative paths are separated by spaces.
    fields: Mapping[str, str] = field(default_factory=dict)
    #: Paths of the values that are appended to the title and the fingerprint.
    joins: Mapping[str, str] = field(default_factory=dict)
    words: Mapping[str, Severity] = field(default_factory=dict)
    resolved: tuple[_PresetRule, ...] = ()
    dropped: tuple[_PresetRule, ...] = ()

    @property
    def mapping(self) -> FieldMapping:
        """Mapping for bodies from the tool."""
        return FieldMapping(
            {
                AlertField(name): tuple(map(parse_dotted_path, paths.split()))
                for name, paths in self.fields.items()
            },
            MappingRules(
                severity_words=self.words,
                resolved_when=tuple(_build_conditions(self.resolved)),
                dropped_when=tuple(_build_conditions(self.dropped)),
                joins={
                    name: ValueJoin(tuple(map(parse_dotted_path, paths.split())))
                    for name, paths in self.joins.items()
                },
            ),
        )


def _build_conditions(rules: tuple[_PresetRule, ...]) -> Iterator[PayloadCondition]:
    for path, operator, words in rules:
        yield PayloadCondition(
            parse_dotted_path(path), operator, tuple(word.strip() for word in words.split(","))
        )


CRITICAL, HIGH, MEDIUM, LOW, INFO = (
    Severity.CRITICAL,
    Severity.HIGH,
    Severity.MEDIUM,
    Severity.LOW,
    Severity.INFO,
)
_IS = Operator.IS
_CONTAINS = Operator.CONTAINS
_MONIT_RECOVERY_EVENTS = "exists, timeout recovery, data access succeeded"

PRESETS: tuple[Preset, ...] = (
    Preset(
        name="Grafana (legacy alerting)",
        marks="ruleId ruleName ruleUrl state",
        fields={
            "title": "ruleName title",
            "description": "message",
            "runbook": "ruleUrl",
            "fingerprint": "ruleUrl ruleId",
        },
        joins={"fingerprint": "ruleId"},
        resolved=(("state", _IS, "ok"),),
        dropped=(("state", _IS, "paused, pending"),),
        hint="Add a notification channel of the type webhook, with the key as its password.",
    ),
    Preset(
        name="Uptime Kuma",
        marks="heartbeat monitor msg",
        fields={
            "title": "monitor.name msg",
            "description": "heartbeat.msg msg",
            "hosts": "monitor.hostname monitor.url",
            "fingerprint": "monitor.name msg",
        },
        joins={"fingerprint": "monitor.id"},
        # Messages without a heartbeat are tests or certificate warnings, which have no recovery.
        resolved=(
            ("heartbeat.status", _IS, "1"),
            ("heartbeat", Operator.IS_MISSING, "yes"),
        ),
        dropped=(("heartbeat.status", _IS, "2, 3"),),
        hint="Add a notification of the type Webhook with the body application/json.",
    ),
    Preset(
        name="Zabbix",
        marks="event_id event_value",
        fields={
            "title": "event_name alert_subject",
            "description": "trigger_description alert_message",
            "severity": "event_severity event_nseverity",
            "hosts": "host_name host_ip",
            "fingerprint": "event_id",
        },
        words={
            **dict.fromkeys(("disaster", "5"), CRITICAL),
            **dict.fromkeys(("high", "4"), HIGH),
            **dict.fromkeys(("average", "3"), MEDIUM),
            **dict.fromkeys(("warning", "2"), LOW),
            **dict.fromkeys(("information", "1"), INFO),
            **dict.fromkeys(("not classified", "0"), Severity.UNKNOWN),
        },
        resolved=(("event_value", _IS, "0"),),
        hint="Add a media type of the type Webhook that posts its parameters as JSON.",
    ),
    Preset(
        name="Sentry (issue alerts)",
        marks="action data.event",
        fields={
            "title": "data.event.title",
            "description": "data.event.message data.event.culprit",
            "severity": "data.event.level",
            "service": "data.event.project_name data.event.project",
            "platform_environment_name": "data.event.environment",
            "runbook": "data.event.web_url",
            "fingerprint": "data.event.issue_id data.event.issue_url",
        },
        words={"fatal": CRITICAL, "error": HIGH, "warning": MEDIUM, "info": INFO, "debug": INFO},
        hint="This webhook does not report when an issue is resolved. Add the resource “issue”.",
    ),
    Preset(
        name="Sentry (issues)",
        marks="action data.issue",
        fields={
            "title": "data.issue.title",
            "description": "data.issue.culprit",
            "severity": "data.issue.level",
            "service": "data.issue.project.slug",
            "runbook": "data.issue.web_url data.issue.permalink",
            "fingerprint": "data.issue.id",
        },
        words={"fatal": CRITICAL, "error": HIGH, "warning": MEDIUM, "info": INFO, "debug": INFO},
        resolved=(("action", _IS, "resolved, archived, ignored"),),
        dropped=(("action", _IS, "assigned"),),
        hint="Add an internal integration with the webhook resource “issue”.",
    ),
    Preset(
        name="Sentry (metric alerts)",
        marks="action data.metric_alert",
        fields={
            "title": "data.description_title data.metric_alert.title",
            "description": "data.description_text",
            "severity": "action",
            "service": "data.metric_alert.projects.0",
            "runbook": "data.web_url",
            "fingerprint": "data.metric_alert.id",
        },
        words={"warning": MEDIUM, "resolved": INFO},
        resolved=(("action", _IS, "resolved"),),
        hint="Add an internal integration and choose it as an action of the alert rule.",
    ),
    Preset(
        name="Sentry (webhooks plugin)",
        marks="project culprit level event url",
        fields={
            "title": "message event.title",
            "description": "culprit",
            "severity": "level",
            "service": "project_name project",
            "platform_environment_name": "event.environment",
            "runbook": "url",
            "fingerprint": "project",
        },
        joins={"fingerprint": "id"},
        words={"fatal": CRITICAL, "error": HIGH, "warning": MEDIUM, "info": INFO, "debug": INFO},
        hint="This plugin does not report when an issue is resolved.",
    ),
    Preset(
        name="Amazon CloudWatch through SNS",
        marks="Type TopicArn Message.AlarmName Message.NewStateValue",
        fields={
            "title": "Message.AlarmName",
            "description": "Message.NewStateReason Message.AlarmDescription",
            "start_time": "Message.StateChangeTime",
            "service": "Message.Trigger.Namespace",
            "hosts": "Message.Trigger.Dimensions.0.value",
            "fingerprint": "Message.AlarmArn Message.AlarmName",
        },
        resolved=(("Message.NewStateValue", _IS, "ok"),),
        # Insufficient data is neither a problem nor a recovery, so an open alert stays open.
        dropped=(("Message.NewStateValue", _IS, "insufficient_data"),),
        hint="Subscribe the URL to the topic with the protocol HTTPS. The subscription is "
        "confirmed automatically.",
    ),
    Preset(
        name="Amazon SNS",
        marks="Type TopicArn MessageId Message",
        fields={
            "title": "Subject Message",
            "description": "Message",
            "start_time": "Timestamp",
            "fingerprint": "TopicArn",
        },
        joins={"fingerprint": "Subject"},
        hint="Subscribe the URL to the topic with the protocol HTTPS.",
    ),
    Preset(
        name="Datadog",
        marks="alert_transition title",
        fields={
            "title": "alert_title title",
            "description": "body",
            "severity": "alert_type priority",
            "hosts": "hostname",
            "runbook": "link",
            "fingerprint": "aggreg_key alert_id",
        },
        words={"error": CRITICAL, "warning": MEDIUM, "info": INFO, "success": INFO},
        resolved=(("alert_transition", _IS, "recovered, ok"),),
        hint="Keep alert_transition, alert_type, aggreg_key and link in the webhook's payload.",
    ),
    Preset(
        name="Datadog (default payload)",
        marks="event_type title last_updated org.id",
        fields={"title": "title", "description": "body"},
        hint="Add $ALERT_TRANSITION and $AGGREG_KEY to the webhook's payload. Without them, "
        "recoveries do not resolve alerts.",
    ),
    Preset(
        name="Healthchecks",
        marks="name status n_pings last_ping",
        fields={
            "title": "name slug",
            "description": "desc",
            "service": "slug",
            "fingerprint": "uuid unique_key",
        },
        resolved=(("status", _IS, "up"),),
        dropped=(("status", _IS, "new, paused"),),
        hint="Add an integration of the type Webhook with the body $JSON for down and up.",
    ),
    Preset(
        name="Nagios or Icinga",
        marks="NOTIFICATIONTYPE HOSTNAME",
        fields={
            "title": "HOSTNAME",
            "description": "SERVICEOUTPUT HOSTOUTPUT",
            "severity": "SERVICESTATE HOSTSTATE",
            "service": "SERVICEDESC",
            "hosts": "HOSTNAME HOSTADDRESS",
            "fingerprint": "HOSTNAME",
        },
        joins={"title": "SERVICEDESC", "fingerprint": "SERVICEDESC"},
        words={
            **dict.fromkeys(("critical", "down"), CRITICAL),
            "unreachable": HIGH,
            "unknown": MEDIUM,
            "warning": LOW,
            **dict.fromkeys(("ok", "up"), INFO),
        },
        resolved=(("NOTIFICATIONTYPE", _IS, "recovery"),),
        dropped=(
            ("NOTIFICATIONTYPE", _IS, "acknowledgement, custom, flappingstart, flappingstop"),
            ("NOTIFICATIONTYPE", _CONTAINS, "downtime"),
        ),
        hint="Post the macros as JSON from a notification command.",
    ),
    Preset(
        name="Monit",
        marks="MONIT_SERVICE MONIT_EVENT",
        fields={
            "title": "MONIT_SERVICE",
            "description": "MONIT_DESCRIPTION",
            "service": "MONIT_SERVICE",
            "hosts": "MONIT_HOST",
            "fingerprint": "MONIT_HOST",
        },
        joins={"title": "MONIT_EVENT", "fingerprint": "MONIT_SERVICE"},
        resolved=(
            ("MONIT_EVENT", _IS, _MONIT_RECOVERY_EVENTS),
            ("MONIT_EVENT", _CONTAINS, "succeeded"),
        ),
        hint="Post the variables of Monit as JSON with “exec”.",
    ),
    Preset(
        name="collectd",
        marks="labels.alertname labels.severity startsAt annotations",
        beginning=("labels.service", "collectd"),
        fields={
            "title": "annotations.summary labels.alertname",
            "severity": "labels.severity",
            "start_time": "startsAt",
            "service": "labels.alertname",
            "hosts": "labels.instance",
            "fingerprint": "labels.instance",
        },
        # The label named after the plugin contains the plugin's instance, such as a mount point or
        # a disk.
        joins={
            "fingerprint": "labels.alertname labels.type labels.df labels.disk labels.interface "
            "labels.processes"
        },
        words={"failure": CRITICAL, "warning": LOW, "okay": INFO},
        resolved=(("labels.severity", _IS, "okay"),),
        hint="In a Node of the write_http plugin, set Notifications true.",
    ),
    Preset(
        name="Apprise",
        marks="version title message type attachments",
        fields={"description": "message", "severity": "type", "fingerprint": "title"},
        words={"failure": CRITICAL, "warning": LOW, "info": INFO, "success": INFO},
        resolved=(("type", _IS, "success"),),
        hint="Use a URL that starts with jsons:// and contains +Authorization=Bearer%20KEY.",
    ),
    Preset(
        name="Statuspage",
        marks="page.status_indicator incident.status",
        fields={
            "title": "incident.name",
            "description": "incident.incident_updates.0.body",
            "start_time": "incident.created_at",
            "end_time": "incident.resolved_at",
            "severity": "incident.impact",
            "runbook": "incident.shortlink",
            "fingerprint": "incident.id",
        },
        words={
            "critical": CRITICAL,
            "major": HIGH,
            "minor": LOW,
            "none": INFO,
            "maintenance": INFO,
        },
        resolved=(("incident.status", _IS, "resolved, completed, postmortem"),),
        hint="Subscribe to the status page by webhook, with the key in the URL.",
    ),
    Preset(
        name="Statuspage (components)",
        marks="page.id component.id component_update.new_status",
        fields={
            "title": "component.name",
            "description": "page.status_description",
            "severity": "component_update.new_status",
            "service": "component.name",
            "fingerprint": "component.id",
        },
        words={
            "major_outage": CRITICAL,
            "partial_outage": HIGH,
            "degraded_performance": LOW,
            **dict.fromkeys(("under_maintenance", "operational"), INFO),
        },
        resolved=(("component_update.new_status", _IS, "operational"),),
        hint="Subscribe to the status page by webhook, with the key in the URL.",
    ),
    Preset(
        name="Pingdom",
        marks="check_id check_name current_state",
        fields={
            "title": "check_name",
            "description": "long_description description",
            "start_time": "state_changed_timestamp",
            "severity": "importance_level",
            "hosts": "check_params.hostname",
            "fingerprint": "check_id",
        },
        resolved=(("current_state", _IS, "up, success"),),
        hint="Add an integration of the type Webhook, with the key in the URL.",
    ),
    Preset(
        name="Azure Monitor",
        marks="schemaId data.essentials.monitorCondition",
        fields={
            "title": "data.essentials.alertRule",
            "description": "data.essentials.description",
            "start_time": "data.essentials.firedDateTime",
            "end_time": "data.essentials.resolvedDateTime",
            "severity": "data.essentials.severity",
            "service": "data.essentials.monitoringService",
            "hosts": "data.essentials.configurationItems",
            "fingerprint": "data.essentials.originAlertId data.essentials.alertId",
        },
        words={"sev0": CRITICAL, "sev1": HIGH, "sev2": MEDIUM, "sev3": LOW, "sev4": INFO},
        resolved=(("data.essentials.monitorCondition", _IS, "resolved"),),
        hint="Turn on the common alert schema in the action group.",
    ),
    Preset(
        name="Google Cloud Monitoring",
        marks="incident.incident_id incident.state",
        fields={
            "title": "incident.policy_name incident.condition_name",
            "description": "incident.summary",
            "start_time": "incident.started_at",
            "end_time": "incident.ended_at",
            "severity": "incident.severity",
            "hosts": "incident.resource_name",
            "runbook": "incident.url",
            "fingerprint": "incident.incident_id",
        },
        words={"error": HIGH, "warning": LOW, "no severity": CRITICAL},
        resolved=(("incident.state", _IS, "closed"),),
        hint="Add a notification channel of the type Webhook with basic authentication.",
    ),
)
