"""Integration type for links to external on-call tools."""

from domain.alerts.formats.base import ApiUrl, Link


class ExternalTool(Link):
    """An on-call tool that takes over paging while the link is active."""

    name = "external"
    label = "External on-call tool"
    help = "The external tool is a link, and takes over paging while it is active."
    api_url = ApiUrl(
        help="The URL of the on-call tool's API.",
        refusal="The URL of the on-call tool starts with https:// or http://.",
    )


EXTERNAL = ExternalTool()
