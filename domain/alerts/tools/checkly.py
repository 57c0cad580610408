"""Rules for recognizing and reading messages from Checkly."""

from domain.alerts.tools.base import CRITICAL, INFO, IS, LOW, MEDIUM, MappedTool, ToolKind

TOOL = MappedTool(
    name="Checkly",
    kind=ToolKind.UPTIME,
    marks="alert_type check_id check_name",
    fields={
        "title": "check_name",
        "description": "check_error_message event",
        "start_time": "started_at",
        "service": "group_name",
        "severity": "alert_type",
        "hosts": "ssl_check_domain",
        "source_url": "link",
        "fingerprint": "check_id",
    },
    # Only alerts about certificates have a domain. Such an alert ends independently of the check's
    # failures.
    joins={"fingerprint": "ssl_check_domain"},
    words={
        **dict.fromkeys(("alert_failure", "alert_failure_remain"), CRITICAL),
        "alert_degraded_failure": CRITICAL,
        **dict.fromkeys(("alert_degraded", "alert_degraded_remain"), MEDIUM),
        "alert_failure_degraded": MEDIUM,
        "alert_ssl": LOW,
        **dict.fromkeys(("alert_recovery", "alert_degraded_recovery"), INFO),
    },
    resolved=(("alert_type", IS, "alert_recovery, alert_degraded_recovery"),),
    hint="Add a webhook whose body sets alert_type, check_id, check_name, check_error_message, "
    "started_at, ssl_check_domain and link to Checkly's variables.",
)
