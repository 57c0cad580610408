"""Rules for recognizing and reading messages from Honeybadger."""

from domain.alerts.tools.base import CRITICAL, HIGH, INFO, IS, LOW, MappedTool, ToolKind

TOOL = MappedTool(
    name="Honeybadger",
    kind=ToolKind.ERRORS,
    marks="event message project.pivotal_project_id project.unresolved_fault_count",
    fields={
        "title": "fault.klass site.name",
        "description": "message",
        "start_time": "outage.down_at fault.last_notice_at",
        "service": "project.name",
        "severity": "event",
        "hosts": "site.url",
        "platform_environment_name": "fault.environment",
        "source_url": "fault.url site.details_url",
        "fingerprint": "fault.id site.id",
    },
    joins={"title": "fault.message check_in.name", "fingerprint": "check_in.id"},
    words={
        "down": CRITICAL,
        **dict.fromkeys(("occurred", "unresolved", "rate_exceeded", "check_in_missing"), HIGH),
        "cert_will_expire": LOW,
        **dict.fromkeys(("resolved", "up", "check_in_reporting"), INFO),
    },
    resolved=(("event", IS, "resolved, up, check_in_reporting"),),
    dropped=(("event", IS, "assigned, commented, deployed"),),
    hint="Add an integration of the type Webhook with the payload version v2, and include "
    "resolved errors.",
)
