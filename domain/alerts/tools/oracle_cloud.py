"""Rules for recognizing and reading alarms from Oracle Cloud Infrastructure."""

from domain.alerts.tools.base import CRITICAL, HIGH, INFO, IS, IS_MISSING, LOW, MappedTool, ToolKind

TOOL = MappedTool(
    name="Oracle Cloud Monitoring",
    uses_key_in_url=True,
    kind=ToolKind.CLOUD,
    marks="type severity timestampEpochMillis alarmMetaData",
    fields={
        "title": "title",
        "description": "body alarmMetaData.0.alarmSummary",
        "start_time": "timestampEpochMillis",
        "severity": "severity",
        "service": "alarmMetaData.0.namespace",
        "hosts": "alarmMetaData.0.dimensions.0.resourceDisplayName "
        "alarmMetaData.0.dimensions.0.resourceName",
        "source_url": "alarmMetaData.0.alarmUrl",
        "fingerprint": "dedupeKey dedupekey",
    },
    words={"critical": CRITICAL, "error": HIGH, "warning": LOW, "info": INFO},
    resolved=(("type", IS, "FIRING_TO_OK, RESET"),),
    # The first message for a subscription contains only the URL that confirms the subscription.
    dropped=(("alarmMetaData", IS_MISSING, "yes"),),
    hint="Add a subscription with the key in the URL to the alarm's topic, and open the "
    "confirmation URL in its first message.",
)
