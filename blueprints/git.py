"""*.git: Git's requests for a clone, which are refused: there are no repositories yet."""

from flask import Response
from flask.typing import ResponseReturnValue

from web.access.marks import open_to_anyone
from web.http.endpoints import ErrorFormat, MachineBlueprint

git = MachineBlueprint("git", __name__, errors=ErrorFormat.PAGE)
#: Git shows a text like this behind "remote:".
_TEXT = "Gatebell has no Git repositories yet: there is nothing here to clone, fetch or push.\n"


@git.get("/<repository:path>/info/refs")
@open_to_anyone
def refs(path: str) -> ResponseReturnValue:
    """Request credentials for every path, so that the response does not reveal projects."""
    del path
    return _no_git()


@git.post("/<repository:path>/<any('git-upload-pack', 'git-receive-pack'):service>")
@open_to_anyone
def pack(path: str, service: str) -> ResponseReturnValue:
    """Respond in the same way to the next requests of Git."""
    del path, service
    return _no_git()


def _no_git() -> Response:
    response = Response(_TEXT, 401, mimetype="text/plain")
    response.headers["WWW-Authenticate"] = 'Basic realm="Gatebell", charset="UTF-8"'
    response.headers["Cache-Control"] = "no-store"
    return response
