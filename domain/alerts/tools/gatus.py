"""Rules for recognizing messages from Gatus with its GitLab provider.

The provider sends messages in the service's own format.
"""

from domain.alerts.tools.base import MonitoringTool, ToolKind

TOOL = MonitoringTool(
    name="Gatus",
    kind=ToolKind.UPTIME,
    marks="title service fingerprint monitoring_tool",
    beginning=("monitoring_tool", "gatus"),
    hint="Add the URL as webhook-url and the key as authorization-key of the provider gitlab, "
    "and set send-on-resolved.",
)
