"""Integration type for links to external on-call tools."""

from domain.alerts.formats.base import ApiUrlSetting, OnCallToolLink


class ExternalTool(OnCallToolLink):
    """A link to an external on-call tool, which takes over paging while the link is active."""

    name = "external"
    label = "External on-call tool"
    help = "External on-call tool links to a tool that takes over paging while the link is active."
    api_url = ApiUrlSetting(
        help="The URL of the on-call tool's API.",
        error_message="The URL of the on-call tool must start with https:// or http://.",
    )


EXTERNAL = ExternalTool()
