"""Rules for recognizing and reading messages from GitLab about pipelines."""

from domain.alerts.tools.base import INFO, IS, IS_NOT, MEDIUM, MappedTool, ToolKind

TOOL = MappedTool(
    name="GitLab pipelines",
    kind=ToolKind.DELIVERY,
    marks="object_kind object_attributes.ref object_attributes.status project.path_with_namespace",
    fields={
        "title": "project.path_with_namespace",
        "description": "commit.message",
        "start_time": "object_attributes.finished_at",
        "severity": "object_attributes.status",
        "service": "project.path_with_namespace",
        "source_url": "object_attributes.url",
        "fingerprint": "project.web_url",
    },
    joins={
        "title": "object_attributes.ref object_attributes.status",
        "fingerprint": "object_attributes.ref object_attributes.tag",
    },
    words={"failed": MEDIUM, "success": INFO},
    resolved=(("object_attributes.status", IS, "success"),),
    dropped=(
        ("object_kind", IS_NOT, "pipeline"),
        ("object_attributes.status", IS_NOT, "failed, success"),
        # The success of a child pipeline would resolve the alert of its parent.
        ("object_attributes.source", IS, "parent_pipeline"),
    ),
    hint="Add a webhook for pipeline events with the custom Authorization header.",
)
