"""Rules for recognizing and reading messages from Flux."""

from domain.alerts.tools.base import HIGH, INFO, IS, MappedTool, ToolKind

#: Event reasons for steps, and for the rollback of a failed release.
_STEPS = (
    "Progressing, ProgressingWithRetry, DependencyNotReady, HealthCheckCanceled, "
    "GarbageCollectionSucceeded, RollbackSucceeded, UninstallSucceeded"
)

TOOL = MappedTool(
    name="Flux",
    kind=ToolKind.KUBERNETES,
    marks="involvedObject.kind involvedObject.name severity reason reportingController",
    fields={
        "title": "involvedObject.kind",
        "description": "message",
        "start_time": "timestamp",
        "severity": "severity",
        "service": "involvedObject.name",
        "fingerprint": "involvedObject.kind",
    },
    joins={
        "title": "involvedObject.namespace involvedObject.name reason",
        "fingerprint": "involvedObject.namespace involvedObject.name involvedObject.uid",
    },
    words={"error": HIGH, "info": INFO},
    resolved=(("severity", IS, "info"),),
    dropped=(("reason", IS, _STEPS),),
    hint="Add a provider of the type generic with the Authorization header, and alerts with the "
    "severity info.",
)
