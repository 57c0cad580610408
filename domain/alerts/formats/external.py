"""Integration type for links to external on-call tools."""

from domain.alerts.formats.base import ApiUrl, OnCallToolLink


class ExternalTool(OnCallToolLink):
    """An on-call tool that takes over paging while the link is active."""

    name = "external"
    label = "External on-call tool"
    help = "External on-call tool links to a tool that takes over paging while the link is active."
    api_url = ApiUrl(
        help="The URL of the on-call tool's API.",
        error_message="The URL of the on-call tool must start with https:// or http://.",
    )


EXTERNAL = ExternalTool()
