"""Git over HTTPS at *.git, served by Git's own http-backend."""

from flask import Response, request
from flask.typing import ResponseReturnValue

from blueprints.git.http_backend import serve_git
from domain.core.errors import ForbiddenError, NotFoundError
from domain.git.access import GitService
from web.access.decorators import open_to_anyone
from web.access.git_decorators import GitAccess, git_access_required
from web.http.endpoints import ApiClientBlueprint, ErrorFormat
from web.http.json_responses import build_json_response

git = ApiClientBlueprint("git", __name__, errors=ErrorFormat.TEXT)
_ALL_METHODS = ("GET", "POST", "PUT", "DELETE")
_LFS_MEDIA_TYPE = "application/vnd.git-lfs+json"
_NOT_IMPLEMENTED = 501
_SMART_PROTOCOL_ONLY = "Only the smart HTTP protocol is supported. Use Git 1.6.6 or later."


@git.get("/<repository:path>/info/refs")
@git_access_required
def refs(access: GitAccess) -> ResponseReturnValue:
    """Advertise the branches and tags, or the capabilities of protocol version 2."""
    if request.args.get("service") not in set(GitService):
        raise ForbiddenError(_SMART_PROTOCOL_ONLY)
    return serve_git(access, "info/refs")


@git.post("/<repository:path>/<any('git-upload-pack', 'git-receive-pack'):service>")
# The session's transactions are read-only. A transfer writes in separate transactions.
@git_access_required.with_changes(writes=False)
def pack(access: GitAccess) -> ResponseReturnValue:
    """Transfer objects to or from the client."""
    return serve_git(access, access.service)


@git.route("/<repository:path>/info/lfs/<path:endpoint>", methods=_ALL_METHODS)
@git_access_required.with_changes(writes=False, errors=ErrorFormat.MESSAGE)
def lfs(access: GitAccess, endpoint: str) -> ResponseReturnValue:
    """Reject Git LFS requests with an error in the format of the LFS batch API."""
    del access, endpoint
    sentence = "Git LFS is not supported. Push the files without LFS, or store them elsewhere."
    return build_json_response({"message": sentence}, _NOT_IMPLEMENTED)


@git.route("/<repository:path>/<path:file>", methods=_ALL_METHODS)
@open_to_anyone.with_changes(writes=False)
def files(path: str, file: str) -> ResponseReturnValue:
    """Reject requests that use the dumb protocol, with the same error for every repository."""
    del path, file
    raise NotFoundError(_SMART_PROTOCOL_ONLY)


@git.after_request
def set_lfs_headers(response: Response) -> Response:
    """Set the media type and the authentication challenge of Git LFS responses."""
    if request.endpoint == "git.lfs":
        response.mimetype = _LFS_MEDIA_TYPE
        if "WWW-Authenticate" in response.headers:
            response.headers["LFS-Authenticate"] = 'Basic realm="Git LFS"'
    return response
