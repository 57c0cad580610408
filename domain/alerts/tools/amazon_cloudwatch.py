"""Rules for recognizing and reading messages from Amazon CloudWatch through SNS."""

from domain.alerts.tools.base import IS, MappedTool, ToolKind

TOOL = MappedTool(
    name="Amazon CloudWatch through SNS",
    kind=ToolKind.CLOUD,
    guide="cloudwatch",
    marks="Type TopicArn Message.AlarmName Message.NewStateValue",
    fields={
        "title": "Message.AlarmName",
        "description": "Message.NewStateReason Message.AlarmDescription",
        "start_time": "Message.StateChangeTime",
        "service": "Message.Trigger.Namespace",
        "hosts": "Message.Trigger.Dimensions.0.value",
        "fingerprint": "Message.AlarmArn Message.AlarmName",
    },
    resolved=(("Message.NewStateValue", IS, "ok"),),
    # Insufficient data is neither a problem nor a recovery, so an open alert stays open.
    dropped=(("Message.NewStateValue", IS, "insufficient_data"),),
    hint="Subscribe the URL to the topic with the protocol HTTPS. The subscription is "
    "confirmed automatically.",
)
