"""Names the parameters that a list of what GitLab has as well did not know, and ignored."""

from collections.abc import Sequence
from urllib.parse import quote

from flask import Response, after_this_request

HEADER = "Gatebell-Ignored-Parameters"
#: More names, and longer ones, are cut.
_MOST = 20
_LONGEST = 50


def name_ignored(names: Sequence[str]) -> None:
    """Let the response to this request name parameters, percent-encoded."""
    shown = ", ".join(quote(name[:_LONGEST], safe="[]") for name in names[:_MOST])

    @after_this_request
    def _say(response: Response) -> Response:
        response.headers[HEADER] = shown
        return response
