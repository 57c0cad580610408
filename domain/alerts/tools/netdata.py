"""Rules for recognizing and reading messages from Netdata.

Alerts and messages about unreachable nodes use the same webhook.
"""

from domain.alerts.tools.base import CRITICAL, INFO, IS, LOW, MappedTool, ToolKind

TOOL = MappedTool(
    name="Netdata",
    kind=ToolKind.METRICS,
    marks="alert chart context space family class severity",
    fields={
        "title": "message",
        "description": "info",
        "start_time": "date",
        "severity": "severity",
        "service": "space",
        "hosts": "host",
        "source_url": "alert_url url",
        # Only the URL identifies the node of an alert.
        "fingerprint": "alert_url url",
    },
    joins={"fingerprint": "alert chart host"},
    words={"critical": CRITICAL, "warning": LOW, **dict.fromkeys(("clear", "info"), INFO)},
    resolved=(("severity", IS, "clear"), ("status.text", IS, "reachable")),
    hint="Add the integration PagerDuty with the key and a URL that ends with /v2/enqueue, because "
    "webhooks have to answer a challenge.",
)
