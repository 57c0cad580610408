"""Rules for recognizing and reading messages from collectd."""

from domain.alerts.tools.base import CRITICAL, INFO, IS, LOW, MappedTool, ToolKind

TOOL = MappedTool(
    name="collectd",
    kind=ToolKind.METRICS,
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
    # The label that is named after the plugin contains the instance, such as a mount point or a
    # disk.
    joins={
        "fingerprint": "labels.alertname labels.type labels.df labels.disk labels.interface "
        "labels.processes"
    },
    words={"failure": CRITICAL, "warning": LOW, "okay": INFO},
    resolved=(("labels.severity", IS, "okay"),),
    hint="In a Node of the write_http plugin, set Notifications true.",
)
