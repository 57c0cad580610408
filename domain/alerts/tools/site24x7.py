"""Rules for recognizing and reading messages from Site24x7."""

from domain.alerts.tools.base import CRITICAL, HIGH, INFO, IS, MEDIUM, MappedTool, ToolKind

TOOL = MappedTool(
    name="Site24x7",
    kind=ToolKind.UPTIME,
    marks="MONITOR_ID MONITORNAME STATUS",
    fields={
        "title": "MONITORNAME",
        "description": "INCIDENT_REASON INCIDENT_DETAILS",
        "start_time": "INCIDENT_TIME_ISO",
        "severity": "STATUS",
        "hosts": "MONITORURL",
        "source_url": "MONITOR_DASHBOARD_LINK",
        "fingerprint": "MONITOR_ID",
    },
    words={"down": CRITICAL, "critical": HIGH, "trouble": MEDIUM, "up": INFO},
    resolved=(("STATUS", IS, "up"),),
    hint="Add the third-party integration Webhooks, and select “Post as JSON” and “Send Incident "
    "Parameters”.",
)
