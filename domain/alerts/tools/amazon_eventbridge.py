"""Rules for recognizing and reading Amazon CloudWatch alarms sent through EventBridge."""

from domain.alerts.tools.base import IS, IS_NOT, MappedTool, ToolKind

_DIMENSIONS = "detail.configuration.metrics.0.metricStat.metric.dimensions"

TOOL = MappedTool(
    name="Amazon CloudWatch through EventBridge",
    kind=ToolKind.CLOUD,
    marks="detail-type source detail.alarmName detail.state.value",
    fields={
        "title": "detail.alarmName",
        "description": "detail.state.reason detail.configuration.description",
        "start_time": "detail.state.timestamp time",
        "service": "detail.configuration.metrics.0.metricStat.metric.namespace",
        "hosts": f"{_DIMENSIONS}.InstanceId {_DIMENSIONS}.DBInstanceIdentifier",
        "fingerprint": "resources.0",
    },
    resolved=(("detail.state.value", IS, "ok"),),
    dropped=(
        # Insufficient data is neither a problem nor a recovery, so an open alert stays open.
        ("detail.state.value", IS, "insufficient_data"),
        ("detail-type", IS_NOT, "CloudWatch Alarm State Change"),
    ),
    hint="Send “CloudWatch Alarm State Change” events to an API destination with the key as a "
    "Bearer token.",
)
