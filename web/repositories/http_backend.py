"""Runs Git's own `git http-backend` for a request (CGI, RFC 3875)."""

import logging
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from errno import ECONNRESET
from functools import partial
from pathlib import Path

from flask import Response, request
from sqlalchemy.exc import SQLAlchemyError

from domain.projects.listing import note_push_to
from domain.releases.version import parse_release
from domain.repositories.access import GitService, download_event
from domain.repositories.child import Child, ChildTimeoutError
from domain.repositories.errors import GitBodyTooLargeError, GitFailedError, GitUnavailableError
from domain.repositories.program import ASKING_BEFORE_REFS_MOVE
from domain.repositories.storage import (
    check_room,
    ensure_repository,
    note_push,
    repository_path,
)
from web.access.git_marks import GitAccess
from web.extensions import client_address
from web.http.audit_events import prepare_event
from web.http.transactions import prepared
from web.repositories.process_slots import Caller, ProcessSlots
from web.repositories.transfer import (
    Transfer,
    TransferPlan,
    is_compressed,
    leave_body,
    pieces_of,
    read_ahead,
)
from web.services import git, now, settings

_log = logging.getLogger("gatebell.git")
#: Bytes of a request to read, decompressed: names of objects alone.
_READ_REQUEST_LIMIT = 64 * 1024 * 1024
#: So much of them is waited for before Git begins: some thousand names.
_READ_AHEAD = 256 * 1024
#: Beside the pack, a push has one line for each branch.
_BESIDE_PACK = 64 * 1024 * 1024
_MOST_HEAD = 8_192
#: Parameters of the protocol, separated by colons (gitprotocol-http).
_PROTOCOL = re.compile(r"[a-z0-9=.:_-]{1,200}")
_TOLD = frozenset({"content-type", "cache-control", "expires", "pragma"})


def serve(wanted: GitAccess, url_path: str) -> Response:
    """Return the response of http-backend; `url_path` is what follows the repository in the URL.

    Raises the errors of `domain.repositories.errors` before anything is transferred.
    """
    path = _prepare(wanted)
    is_call = request.method == "POST"
    is_first_taken = is_call and _is_taken_first(wanted)
    with ExitStack() as undone:
        if is_call:
            undone.callback(leave_body, request.environ, has_ended=False)
        # Nobody holds a slot whose request does not come.
        pieces = _pieces(wanted) if is_call else iter(())
        slot = _slots().take(Caller(address=client_address(), user_id=wanted.user_id))
        undone.callback(slot.release)
        child = git().start(
            ["http-backend"], _environment(wanted, path, url_path), answer=wanted.answer
        )
        undone.callback(child.end)
        head, begun = _read_head(child)
        transfer = Transfer(_plan(wanted, path, pieces), child, slot, begun=begun)
        undone.callback(transfer.close)
        if is_first_taken:
            transfer.take_body()
        response = _respond(transfer, head)
        undone.pop_all()
    return response


def _prepare(wanted: GitAccess) -> Path:
    """Return the path of the repository, which is created if need be."""
    own = git()
    if problem := own.problem():
        raise GitUnavailableError(f"Git on this server is {problem}.")
    _check_size(wanted)
    path = repository_path(own.root, wanted.project.id, wanted.project.created_at)
    ensure_repository(own, path)
    return path


def _check_size(wanted: GitAccess) -> None:
    """Raise the error of a body that is declared too large, or of a push without room for it."""
    current, most = settings(), _most_of_body(wanted)
    if wanted.service is GitService.RECEIVE_PACK:
        check_room(current.repositories_path, least=current.free_space_for_pushes_bytes)
    if (request.content_length or 0) > most:
        raise GitBodyTooLargeError(f"The body is larger than {most} bytes.")


def _most_of_body(wanted: GitAccess) -> int:
    """Return how many bytes a request may have, decompressed."""
    if wanted.service is GitService.RECEIVE_PACK:
        return settings().push_limit_bytes + _BESIDE_PACK
    return _READ_REQUEST_LIMIT


def _is_taken_first(wanted: GitAccess) -> bool:
    """Return whether the body is read before the response begins, so that it can be refused.

    Names of objects are; a pack is not, unless it is compressed once more, as Git never does.
    Raises GitEncodingError.
    """
    return is_compressed(request.environ) or wanted.service is GitService.UPLOAD_PACK


def _slots() -> ProcessSlots:
    current = settings()
    return ProcessSlots(
        current.instance_path / "git_transfers",
        count=current.git_processes,
        wait_seconds=current.git_wait_seconds,
    )


def _environment(wanted: GitAccess, path: Path, url_path: str) -> dict[str, str]:
    """Return the CGI variables, with the configuration of this one request."""
    may_push = wanted.service is GitService.RECEIVE_PACK
    configuration = (
        ("http.receivepack", "true" if may_push else "false"),
        ("receive.maxInputSize", str(settings().push_limit_bytes)),
        *(ASKING_BEFORE_REFS_MOVE if may_push else ()),
    )
    is_discovery = request.method != "POST"
    protocol = request.headers.get("Git-Protocol", "")
    return {
        **git().environment(path, configuration=configuration),
        "GIT_PROJECT_ROOT": str(path.parent),
        "GIT_HTTP_EXPORT_ALL": "1",
        "GIT_HTTP_MAX_REQUEST_BUFFER": str(_READ_REQUEST_LIMIT),
        "GIT_PROTOCOL": protocol if _PROTOCOL.fullmatch(protocol) else "",
        "PATH_INFO": f"/{path.name}/{url_path}",
        "QUERY_STRING": f"service={wanted.service}" if is_discovery else "",
        "REQUEST_METHOD": "POST" if request.method == "POST" else "GET",
        "CONTENT_TYPE": request.headers.get("Content-Type", ""),
        "REMOTE_USER": f"user-{wanted.user_id}" if wanted.user_id else "",
        "REMOTE_ADDR": request.remote_addr or "",
    }


def _read_head(child: Child) -> tuple[bytes, bytes]:
    """Return the head of the CGI response, and what was read behind it.

    http-backend writes it before it reads the body.
    """
    if request.method != "POST":
        child.end_input()
    read = b""
    try:
        while b"\r\n\r\n" not in read and len(read) < _MOST_HEAD:
            piece = child.read()
            if not piece:
                break
            read += piece
    except ChildTimeoutError as error:
        raise GitFailedError("Git on this server does not respond.") from error
    head, separator, rest = read.partition(b"\r\n\r\n")
    if not separator:
        raise GitFailedError("Git failed; the server's log has the reason.")
    return head, rest


def _respond(transfer: Transfer, head: bytes) -> Response:
    lines = (line.partition(":") for line in head.decode("latin-1").split("\r\n"))
    fields = {name.strip().lower(): value.strip() for name, _, value in lines}
    status = int(fields.get("status", "200")[:3])
    response = Response(transfer, status, direct_passthrough=True)
    for name, value in fields.items():
        if name in _TOLD:
            response.headers[name] = value
    return response


def _pieces(wanted: GitAccess) -> Iterator[bytes]:
    """Return the pieces of the body; names of objects are waited for, unless they are many."""
    patience, limit = settings().request_timeout_seconds, _most_of_body(wanted)
    pieces = pieces_of(request.environ, seconds=patience, limit=limit)
    if wanted.service is GitService.UPLOAD_PACK:
        return read_ahead(pieces, most=_READ_AHEAD)
    return pieces


def _plan(wanted: GitAccess, path: Path, pieces: Iterator[bytes]) -> TransferPlan:
    is_push = wanted.service is GitService.RECEIVE_PACK
    is_call = request.method == "POST"
    return TransferPlan(
        service=wanted.service,
        project_id=wanted.project.id,
        user_id=wanted.user_id,
        pieces=pieces,
        environ=request.environ,
        seconds=settings().git_transfer_timeout_seconds,
        when_done=_noting_push(wanted, path) if is_call and is_push else None,
        when_pack_begins=_recording(wanted) if is_call and not is_push else None,
    )


def _noting_push(wanted: GitAccess, path: Path) -> Callable[[], None]:
    """Return what is done after a push that Git took."""
    settle = partial(note_push, git(), path)
    write = prepared(lambda session: note_push_to(wanted.project.id, session=session, now=now()))

    def note() -> None:
        settle()
        try:
            write()
        except SQLAlchemyError as error:  # the branches have moved anyway
            _log.warning("push not noted", extra={"reason": type(error).__name__})

    return note


def _recording(wanted: GitAccess) -> Callable[[], None]:
    """Return what stores the audit event of a download in a short transaction of its own.

    It is called before the first byte of the pack is sent: what cannot be recorded is not sent.
    """
    event = download_event(wanted.project, release=parse_release(settings().release))
    store = prepare_event(event)

    def record() -> None:
        try:
            store()
        except SQLAlchemyError as error:
            _log.error("no audit event, no download", extra={"reason": type(error).__name__})
            raise ConnectionResetError(ECONNRESET, "The download was not recorded.") from error

    return record
