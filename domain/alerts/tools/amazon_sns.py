"""Rules for recognizing and reading messages from Amazon SNS."""

from domain.alerts.tools.base import MappedTool, ToolKind

TOOL = MappedTool(
    name="Amazon SNS",
    kind=ToolKind.CLOUD,
    guide="cloudwatch",
    marks="Type TopicArn MessageId Message",
    fields={
        "title": "Subject Message",
        "description": "Message",
        "start_time": "Timestamp",
        "fingerprint": "TopicArn",
    },
    joins={"fingerprint": "Subject"},
    hint="Subscribe the URL to the topic with the protocol HTTPS, and resolve its alerts manually "
    "or after a time.",
)
