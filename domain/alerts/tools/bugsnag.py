"""Rules for recognizing and reading messages from BugSnag."""

from domain.alerts.tools.base import HIGH, INFO, IS, MEDIUM, MappedTool, ToolKind

TOOL = MappedTool(
    name="BugSnag",
    kind=ToolKind.ERRORS,
    marks="account.id project.id trigger.type error.errorId",
    fields={
        "title": "error.exceptionClass trigger.message",
        "description": "error.context",
        "start_time": "error.receivedAt",
        "service": "project.name",
        "severity": "error.severity",
        "platform_environment_name": "error.releaseStage",
        "source_url": "error.url project.url",
        "fingerprint": "error.errorId project.id",
    },
    joins={"title": "error.message"},
    words={"error": HIGH, "warning": MEDIUM, "info": INFO},
    resolved=(("trigger.stateChange", IS, "fixed, ignored"),),
    dropped=(
        (
            "trigger.type",
            IS,
            "comment, release, projectSamplingStarted, projectApproachingRateLimit",
        ),
        ("trigger.stateChange", IS, "snoozed"),
    ),
    hint="Add an integration of the type Webhook for new and reopened errors, and for changes of "
    "the state.",
)
