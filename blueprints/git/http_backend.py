"""Runs Git's own `git http-backend` for a request (CGI, RFC 3875).

A transfer passes the client's body to a child process, and the child's output to the client. The
transfer outlives its view, so it holds no database connection, and every wait has a timeout. The
transfer is the response iterable (PEP 3333), and the web server closes it.
"""

import logging
import re
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from errno import ECONNRESET
from functools import partial
from itertools import chain
from pathlib import Path
from time import monotonic, sleep
from typing import Any
from weakref import finalize

from flask import Response, request
from gunicorn.http.errors import ParseException
from werkzeug.exceptions import HTTPException

from blueprints.git.process_slots import ProcessSlot, ProcessSlots, SlotCaller
from domain.core.errors import DomainError
from domain.git.access import GitService, build_download_event
from domain.git.errors import (
    GitBodyTooLargeError,
    GitFailedError,
    GitUnavailableError,
    InvalidGitBodyError,
    UnsupportedGitEncodingError,
)
from domain.git.program import PUSH_CONFIGURATION
from domain.git.storage import (
    check_free_space,
    ensure_repository,
    get_repository_path,
    mark_repository_pushed,
)
from domain.git.subprocess import ChildProcess, ChildTimeoutError
from domain.projects.namespace_lists import store_push_time
from domain.releases.version import parse_release
from web.access.git_decorators import GitAccess
from web.database.errors import SQLAlchemyError
from web.http.audit_event_source import prepare_event_storage
from web.http.extensions import get_client_address
from web.http.transactions import defer_transaction
from web.metrics import count_git_transfer
from web.server.request_body import DeadlineBody
from web.services import get_current_time, get_git, get_settings

_log = logging.getLogger("gatebell.git")
_MAX_READ_BYTES = 65_536
#: Maximum size of a decompressed chunk in bytes.
_MAX_DECOMPRESSED_BYTES = 1024 * 1024
_GZIP_ENCODINGS = frozenset({"gzip", "x-gzip"})
_IDENTITY_ENCODINGS = frozenset({"", "identity"})
#: Signature of a pack and the first bytes of its version (gitformat-pack).
_PACK_SIGNATURE = b"PACK\x00\x00\x00"
#: Maximum number of bytes of the child's output that are buffered while the client sends its body.
_MAX_HELD_BYTES = 1024 * 1024
#: Number of seconds that the child has to exit after it has closed its output.
_EXIT_TIMEOUT_SECONDS = 10.0


def is_compressed(environ: dict[str, Any]) -> bool:
    """Return whether a request body is compressed with gzip.

    Raise UnsupportedGitEncodingError for other content codings.
    """
    encoding = environ.get("HTTP_CONTENT_ENCODING", "").strip().lower()
    if encoding not in _GZIP_ENCODINGS | _IDENTITY_ENCODINGS:
        raise UnsupportedGitEncodingError("The only supported content encoding is gzip.")
    return encoding in _GZIP_ENCODINGS


def iterate_body(environ: dict[str, Any], *, seconds: float, limit: int) -> Iterator[bytes]:
    """Return an iterator over the chunks of a body, which can be read after the view has returned.

    `seconds` is the timeout for each chunk. `limit` is the maximum size of the decompressed body in
    bytes. The iterator raises InvalidGitBodyError, GitBodyTooLargeError, and connection errors.
    """
    body = environ["wsgi.input"]
    if isinstance(body, DeadlineBody):
        body.keep_readable(seconds=seconds)
    raw = _read_raw_body(body)
    return _limit_body_size(_decompress_gzip_pieces(raw) if is_compressed(environ) else raw, limit)


def read_body_ahead(pieces: Iterator[bytes], *, maximum: int) -> Iterator[bytes]:
    """Read a whole body, or its first `maximum` bytes, and return an iterator over all chunks.

    Raise InvalidGitBodyError if the body is incomplete, or a timeout error if the body does not
    arrive in time.
    """
    begun: list[bytes] = []
    try:
        for piece in pieces:
            begun.append(piece)
            if sum(map(len, begun)) >= maximum:
                break
    except OSError as error:
        raise InvalidGitBodyError("The body is incomplete.") from error
    return chain(begun, pieces)


def close_after_unread_body(environ: dict[str, Any], *, has_ended: bool) -> None:
    """Close the connection after the response if the rest of the body was not read."""
    body = environ["wsgi.input"]
    if isinstance(body, DeadlineBody) and not has_ended:
        body.close_after_response()


def _read_raw_body(body: Any) -> Iterator[bytes]:
    while piece := body.read(_MAX_READ_BYTES):
        yield piece


def _decompress_gzip_pieces(raw: Iterator[bytes]) -> Iterator[bytes]:
    unpacker = zlib.decompressobj(16 + zlib.MAX_WBITS)
    try:
        for piece in raw:
            rest = piece
            while rest:
                yield unpacker.decompress(rest, _MAX_DECOMPRESSED_BYTES)
                rest = unpacker.unconsumed_tail
            if unpacker.unused_data:
                raise InvalidGitBodyError("The gzip body is followed by other data.")
    except zlib.error as error:
        raise InvalidGitBodyError(
            "The body is not valid gzip, but Content-Encoding is gzip."
        ) from error
    if not unpacker.eof:
        raise InvalidGitBodyError("The gzip body is incomplete.")


def _limit_body_size(pieces: Iterator[bytes], limit: int) -> Iterator[bytes]:
    count = 0
    for piece in pieces:
        count += len(piece)
        if count >= limit:
            raise GitBodyTooLargeError(f"The body must be smaller than {limit} bytes.")
        yield piece


@dataclass(frozen=True, kw_only=True)
class GitTransferOptions:
    """The data, the timeout and the callbacks of a Git transfer."""

    #: Name of the Git service in log entries.
    service: str
    project_id: int
    user_id: int | None
    #: Chunks of the request body.
    pieces: Iterator[bytes]
    #: WSGI environment of the request.
    environ: dict[str, Any] = field(repr=False)
    #: Timeout for the whole transfer in seconds.
    seconds: float
    #: Callback that runs before the first byte of a pack is sent.
    when_pack_begins: Callable[[], None] | None = None
    #: Callback that runs after the child has succeeded and before the response ends.
    when_done: Callable[[], None] | None = None


class GitTransfer:
    """An iterable response body that a running child process writes."""

    def __init__(
        self, plan: GitTransferOptions, child: ChildProcess, slot: ProcessSlot, *, begun: bytes
    ) -> None:
        """Initialize the transfer.

        `begun` is the output that the child wrote after the headers.
        """
        self._plan = plan
        self._child = child
        self._held = bytearray(begun)
        self._began_at = monotonic()
        self._received = self._sent = 0
        self._has_read_all = False
        self._tail = b""
        self._has_pack = False
        self._outcome = "cut off"
        # The finalizer also runs if the response is discarded before it is iterated over.
        self._end = finalize(self, _stop_git_process, child, slot)

    def feed_body(self) -> None:
        """Pass the body to the child until the body ends or the output buffer is full.

        The response has not started, so the server can still report an invalid body.
        Raise InvalidGitBodyError, GitBodyTooLargeError, GitFailedError, or a timeout error if the
        body does not arrive in time.
        """
        try:
            self._send_body_to_child()
        except OSError as error:
            raise InvalidGitBodyError("The body is incomplete.") from error
        except ChildTimeoutError as error:
            self._outcome = "timed out"
            raise GitFailedError("Git on this server did not respond in time.") from error
        except BaseException:
            self._outcome = "bad body"
            raise

    def __iter__(self) -> Iterator[bytes]:
        """Yield the output of the child. Failures reset the connection."""
        try:
            while not self._has_read_all:
                self._send_body_to_child()
                if self._held:
                    yield self._take_buffered_output()
            yield from self._yield_remaining_output()
            self._check_exit_status()
        except ChildTimeoutError as error:
            self._outcome = "timed out"
            raise ConnectionResetError(ECONNRESET, "Git made no progress.") from error
        except (HTTPException, ParseException, TimeoutError, DomainError) as error:
            self._outcome = "bad body"
            raise ConnectionResetError(ECONNRESET, "The body did not arrive.") from error
        finally:
            self.stop_and_log()

    def stop_and_log(self) -> None:
        """Stop the child, release its slot, and log the transfer. Further calls have no effect."""
        if not self._end.alive:
            return
        close_after_unread_body(self._plan.environ, has_ended=self._has_read_all)
        status, said = self._end() or (None, "")
        count_git_transfer(self._plan.service, self._outcome)
        _log.info(
            "Git transfer ended.",
            extra={
                "event": "git.transfer_ended",
                "service": self._plan.service,
                "project_id": self._plan.project_id,
                "user_id": self._plan.user_id,
                "outcome": self._outcome,
                "status": status,
                "bytes_received": self._received,
                "bytes_sent": self._sent,
                "duration_ms": round((monotonic() - self._began_at) * 1000),
                **({"said": said} if status else {}),
            },
        )

    def _send_body_to_child(self) -> None:
        """Pass the body to the child until the body ends or the output buffer is full."""
        for piece in self._plan.pieces:
            self._check_transfer_time()
            self._received += len(piece)
            self._held += self._child.write_input(piece)
            sleep(0)  # let other greenlets run
            if len(self._held) > _MAX_HELD_BYTES:
                return
        self._has_read_all = True
        self._child.close_stdin()

    def _yield_remaining_output(self) -> Iterator[bytes]:
        if self._held:
            yield self._take_buffered_output()
        while piece := self._child.read_output():
            self._check_transfer_time()
            yield self._record_sent_bytes(piece)
            sleep(0)

    def _check_exit_status(self) -> None:
        status = self._child.wait_for_exit(_EXIT_TIMEOUT_SECONDS)
        self._outcome = "done" if status == 0 else "failed"
        if status == 0 and self._plan.when_done:
            self._plan.when_done()

    def _take_buffered_output(self) -> bytes:
        held = bytes(self._held)
        self._held.clear()
        return self._record_sent_bytes(held)

    def _record_sent_bytes(self, piece: bytes) -> bytes:
        self._sent += len(piece)
        if self._plan.when_pack_begins and not self._has_pack:
            self._detect_pack_start(piece, self._plan.when_pack_begins)
        return piece

    def _detect_pack_start(self, piece: bytes, announce: Callable[[], None]) -> None:
        seen = self._tail + piece
        self._tail = seen[1 - len(_PACK_SIGNATURE) :]
        if _PACK_SIGNATURE in seen:
            self._has_pack, self._tail = True, b""
            announce()

    def _check_transfer_time(self) -> None:
        if monotonic() - self._began_at > self._plan.seconds:
            raise ChildTimeoutError


def _stop_git_process(child: ChildProcess, slot: ProcessSlot) -> tuple[int, str]:
    """Stop a child process, and return its exit status and the end of its error output."""
    try:
        status, said = child.terminate(), ""
        with suppress(OSError, ValueError):
            said = child.read_errors()
        return status, said
    finally:
        slot.release_slot()


#: Maximum size of a decompressed read request in bytes. Such requests contain only object names.
_MAX_READ_REQUEST_BYTES = 64 * 1024 * 1024
#: Number of bytes to read before Git starts, which is enough for several thousand object names.
_READ_AHEAD_BYTES = 256 * 1024
#: Maximum size of a push without its pack, in bytes. A push has one line for each branch.
_MAX_PUSH_BYTES_WITHOUT_PACK = 64 * 1024 * 1024
_MAX_HEAD_BYTES = 8_192
#: Pattern for protocol parameters, separated by colons (gitprotocol-http).
_PROTOCOL_PATTERN = re.compile(r"[a-z0-9=.:_-]{1,200}")
_FORWARDED_HEADERS = frozenset({"content-type", "cache-control", "expires", "pragma"})


def serve_git(access: GitAccess, url_path: str) -> Response:
    """Return the response from http-backend.

    `url_path` is the URL path after the repository. Errors from `domain.git.errors` are raised
    before anything is transferred.
    """
    path = _prepare_repository(access)
    is_call = request.method == "POST"
    is_first_taken = is_call and _must_buffer_body(access)
    with ExitStack() as undone:
        if is_call:
            undone.callback(close_after_unread_body, request.environ, has_ended=False)
        # The body is read first, so that a request does not occupy a slot while its body is
        # arriving.
        pieces = _read_body_pieces(access) if is_call else iter(())
        slot = _get_process_slots().acquire_slot(
            SlotCaller(address=get_client_address(), user_id=access.user_id)
        )
        undone.callback(slot.release_slot)
        child = get_git().start_process(
            ["http-backend"], _build_environment(access, path, url_path), answer=access.answer
        )
        undone.callback(child.terminate)
        head, begun = _read_response_head(child)
        transfer = GitTransfer(_build_options(access, path, pieces), child, slot, begun=begun)
        undone.callback(transfer.stop_and_log)
        if is_first_taken:
            transfer.feed_body()
        response = _build_response(transfer, head)
        undone.pop_all()
    return response


def _prepare_repository(access: GitAccess) -> Path:
    """Return the path of the repository, and create the repository if it does not exist."""
    own = get_git()
    if problem := own.find_problem():
        raise GitUnavailableError(f"Git on this server is {problem}.")
    _check_size(access)
    path = get_repository_path(own.root, access.project.id, access.project.created_at)
    ensure_repository(own, path)
    return path


def _check_size(access: GitAccess) -> None:
    """Check the declared size of the body, and the free disk space before a push.

    Raise an error if the body is too large or the disk space is insufficient.
    """
    current, most = get_settings(), _get_max_body_bytes(access)
    if access.service is GitService.RECEIVE_PACK:
        check_free_space(current.repositories_path, minimum=current.free_space_for_pushes_bytes)
    if (request.content_length or 0) >= most:
        raise GitBodyTooLargeError(f"The body must be smaller than {most} bytes.")


def _get_max_body_bytes(access: GitAccess) -> int:
    """Return the maximum size of a decompressed request body in bytes."""
    if access.service is GitService.RECEIVE_PACK:
        return get_settings().push_limit_bytes + _MAX_PUSH_BYTES_WITHOUT_PACK
    return _MAX_READ_REQUEST_BYTES


def _must_buffer_body(access: GitAccess) -> bool:
    """Return whether the body is read before the response starts, so that it can be rejected.

    Lists of object names are read first. Packs are read first only if the client compressed them
    again, which Git never does. Raise UnsupportedGitEncodingError for unsupported content codings.
    """
    return is_compressed(request.environ) or access.service is GitService.UPLOAD_PACK


def _get_process_slots() -> ProcessSlots:
    current = get_settings()
    return ProcessSlots(
        current.instance_path / "git_transfers",
        count=current.git_processes,
        wait_seconds=current.git_wait_seconds,
    )


def _build_environment(access: GitAccess, path: Path, url_path: str) -> dict[str, str]:
    """Return the CGI variables with the Git configuration for this request."""
    may_push = access.service is GitService.RECEIVE_PACK
    configuration = (
        ("http.receivepack", "true" if may_push else "false"),
        ("receive.maxInputSize", str(get_settings().push_limit_bytes)),
        *(PUSH_CONFIGURATION if may_push else ()),
    )
    is_discovery = request.method != "POST"
    protocol = request.headers.get("Git-Protocol", "")
    return {
        **get_git().build_environment(path, configuration=configuration),
        "GIT_PROJECT_ROOT": str(path.parent),
        "GIT_HTTP_EXPORT_ALL": "1",
        "GIT_HTTP_MAX_REQUEST_BUFFER": str(_MAX_READ_REQUEST_BYTES),
        "GIT_PROTOCOL": protocol if _PROTOCOL_PATTERN.fullmatch(protocol) else "",
        "PATH_INFO": f"/{path.name}/{url_path}",
        "QUERY_STRING": f"service={access.service}" if is_discovery else "",
        "REQUEST_METHOD": "POST" if request.method == "POST" else "GET",
        "CONTENT_TYPE": request.headers.get("Content-Type", ""),
        "REMOTE_USER": f"user-{access.user_id}" if access.user_id else "",
        "REMOTE_ADDR": request.remote_addr or "",
    }


def _read_response_head(child: ChildProcess) -> tuple[bytes, bytes]:
    """Return the headers of the CGI response, and any output that was read after the headers.

    http-backend writes the headers before it reads the body.
    """
    if request.method != "POST":
        child.close_stdin()
    read = b""
    try:
        while b"\r\n\r\n" not in read and len(read) < _MAX_HEAD_BYTES:
            piece = child.read_output()
            if not piece:
                break
            read += piece
    except ChildTimeoutError as error:
        raise GitFailedError("Git on this server did not respond in time.") from error
    head, separator, rest = read.partition(b"\r\n\r\n")
    if not separator:
        raise GitFailedError("Git failed. See the server log for the reason.")
    return head, rest


def _build_response(transfer: GitTransfer, head: bytes) -> Response:
    lines = (line.partition(":") for line in head.decode("latin-1").split("\r\n"))
    fields = {name.strip().lower(): value.strip() for name, _, value in lines}
    status = int(fields.get("status", "200")[:3])
    response = Response(transfer, status, direct_passthrough=True)
    for name, value in fields.items():
        if name in _FORWARDED_HEADERS:
            response.headers[name] = value
    return response


def _read_body_pieces(access: GitAccess) -> Iterator[bytes]:
    """Return the chunks of the body.

    A short list of object names is read completely first.
    """
    patience, limit = get_settings().request_timeout_seconds, _get_max_body_bytes(access)
    pieces = iterate_body(request.environ, seconds=patience, limit=limit)
    if access.service is GitService.UPLOAD_PACK:
        return read_body_ahead(pieces, maximum=_READ_AHEAD_BYTES)
    return pieces


def _build_options(access: GitAccess, path: Path, pieces: Iterator[bytes]) -> GitTransferOptions:
    is_push = access.service is GitService.RECEIVE_PACK
    is_call = request.method == "POST"
    return GitTransferOptions(
        service=access.service,
        project_id=access.project.id,
        user_id=access.user_id,
        pieces=pieces,
        environ=request.environ,
        seconds=get_settings().git_transfer_timeout_seconds,
        when_done=_build_push_callback(access, path) if is_call and is_push else None,
        when_pack_begins=_build_download_callback(access) if is_call and not is_push else None,
    )


def _build_push_callback(access: GitAccess, path: Path) -> Callable[[], None]:
    """Return the callback that records a push after Git has accepted the push."""
    settle = partial(mark_repository_pushed, get_git(), path)
    write = defer_transaction(
        lambda session: store_push_time(access.project.id, session=session, now=get_current_time())
    )

    def record_push() -> None:
        settle()
        try:
            write()
        except SQLAlchemyError as error:  # Git has already updated the branches
            _log.warning(
                "Push was accepted, but was not recorded in the database.",
                extra={"event": "git.push_not_recorded", "reason": type(error).__name__},
            )

    return record_push


def _build_download_callback(access: GitAccess) -> Callable[[], None]:
    """Return the callback that stores a download's audit event in its own short transaction.

    The callback runs before the first byte of the pack is sent, so downloads that cannot be
    recorded are not sent.
    """
    event = build_download_event(access.project, release=parse_release(get_settings().release))
    store = prepare_event_storage(event)

    def record_download() -> None:
        try:
            store()
        except SQLAlchemyError as error:
            _log.error(
                "Download was canceled because its audit event could not be stored.",
                extra={"event": "git.download_canceled", "reason": type(error).__name__},
            )
            raise ConnectionResetError(ECONNRESET, "The download was not recorded.") from error

    return record_download
