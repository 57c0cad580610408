"""A transfer of Git: the client's body into a child, and what the child writes to the client.

A transfer lasts longer than its view: it holds no connection of the database, and each of its waits
has an end. It is the iterable of the response (PEP 3333), which the web server closes.
"""

import logging
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from errno import ECONNRESET
from itertools import chain
from time import monotonic, sleep
from typing import Any
from weakref import finalize

from gunicorn.http.errors import ParseException
from werkzeug.exceptions import HTTPException

from domain.errors import DomainError
from domain.repositories.child import Child, ChildTimeoutError
from domain.repositories.errors import (
    GitBodyError,
    GitBodyTooLargeError,
    GitEncodingError,
    GitFailedError,
)
from web.metrics import count_git_transfer
from web.repositories.process_slots import ProcessSlot
from web.server.request_body import DeadlineBody

_log = logging.getLogger("gatebell.git")
_PIECE = 65_536
#: Bytes of one decompressed piece.
_MOST_AT_ONCE = 1024 * 1024
_GZIP = frozenset({"gzip", "x-gzip"})
_PLAIN = frozenset({"", "identity"})
#: The signature of a pack and the first bytes of its version (gitformat-pack).
_PACK_BEGINS = b"PACK\x00\x00\x00"
#: Bytes of the child that are held back while the client still sends.
_MOST_HELD = 1024 * 1024
#: Seconds for a child to exit after it has closed its output.
_EXIT_SECONDS = 10.0


def is_compressed(environ: dict[str, Any]) -> bool:
    """Return whether a body is gzip; raise GitEncodingError for other content codings."""
    encoding = environ.get("HTTP_CONTENT_ENCODING", "").strip().lower()
    if encoding not in _GZIP | _PLAIN:
        raise GitEncodingError("The only supported content encoding is gzip.")
    return encoding in _GZIP


def pieces_of(environ: dict[str, Any], *, seconds: float, limit: int) -> Iterator[bytes]:
    """Return the pieces of a body, which may be read after the view has returned.

    `seconds` is how long a piece may take to come, `limit` how many bytes there may be after
    decompression. The iterator raises GitBodyError, GitBodyTooLargeError, and the errors of a lost
    client.
    """
    body = environ["wsgi.input"]
    if isinstance(body, DeadlineBody):
        body.stream(seconds=seconds)
    raw = _raw(body)
    return _limited(_gunzipped(raw) if is_compressed(environ) else raw, limit)


def read_ahead(pieces: Iterator[bytes], *, most: int) -> Iterator[bytes]:
    """Wait for a body, or for the first `most` bytes of it, and return all its pieces.

    Raises GitBodyError, and the errors of a body that does not come.
    """
    begun: list[bytes] = []
    try:
        for piece in pieces:
            begun.append(piece)
            if sum(map(len, begun)) >= most:
                break
    except OSError as error:
        raise GitBodyError("The body is incomplete.") from error
    return chain(begun, pieces)


def leave_body(environ: dict[str, Any], *, has_ended: bool) -> None:
    """Close the connection after the response if the rest of the body was not read."""
    body = environ["wsgi.input"]
    if isinstance(body, DeadlineBody) and not has_ended:
        body.end_connection()


def _raw(body: Any) -> Iterator[bytes]:
    while piece := body.read(_PIECE):
        yield piece


def _gunzipped(raw: Iterator[bytes]) -> Iterator[bytes]:
    unpacker = zlib.decompressobj(16 + zlib.MAX_WBITS)
    try:
        for piece in raw:
            rest = piece
            while rest:
                yield unpacker.decompress(rest, _MOST_AT_ONCE)
                rest = unpacker.unconsumed_tail
            if unpacker.unused_data:
                raise GitBodyError("The gzip body goes on behind its end.")
    except zlib.error as error:
        raise GitBodyError("The body is not gzip, as its Content-Encoding says.") from error
    if not unpacker.eof:
        raise GitBodyError("The gzip body is incomplete.")


def _limited(pieces: Iterator[bytes], limit: int) -> Iterator[bytes]:
    count = 0
    for piece in pieces:
        count += len(piece)
        if count > limit:
            raise GitBodyTooLargeError(f"The body is larger than {limit} bytes.")
        yield piece


@dataclass(frozen=True, kw_only=True)
class TransferPlan:
    """What is to be transferred, and what happens meanwhile."""

    #: For the log.
    service: str
    project_id: int
    user_id: int | None
    #: The pieces of the client's body.
    pieces: Iterator[bytes]
    #: Of the request.
    environ: dict[str, Any] = field(repr=False)
    #: Seconds for all of it.
    seconds: float
    #: Called before the first byte of a pack is sent.
    when_pack_begins: Callable[[], None] | None = None
    #: Called when the child has ended well, before the client sees the end.
    when_done: Callable[[], None] | None = None


class Transfer:
    """The iterable of a response that a running child writes."""

    def __init__(
        self, plan: TransferPlan, child: Child, slot: ProcessSlot, *, begun: bytes
    ) -> None:
        """Take the child and its slot; `begun` is what it wrote behind the head."""
        self._plan = plan
        self._child = child
        self._held = bytearray(begun)
        self._began_at = monotonic()
        self._received = self._sent = 0
        self._has_read_all = False
        self._tail = b""
        self._has_pack = False
        self._outcome = "cut off"
        # Also where the response is thrown away before anybody iterates over it.
        self._end = finalize(self, _end, child, slot)

    def take_body(self) -> None:
        """Give the client's body to the child, unless the child writes a lot meanwhile.

        Before the response begins, so that a broken body is refused in words. Raises GitBodyError,
        GitBodyTooLargeError, GitFailedError, and the errors of a body that does not come.
        """
        try:
            self._feed()
        except OSError as error:
            raise GitBodyError("The body is incomplete.") from error
        except ChildTimeoutError as error:
            self._outcome = "timed out"
            raise GitFailedError("Git on this server does not respond.") from error
        except BaseException:
            self._outcome = "bad body"
            raise

    def __iter__(self) -> Iterator[bytes]:
        """Yield what the child writes; a failure resets the connection."""
        try:
            while not self._has_read_all:
                self._feed()
                if self._held:
                    yield self._take_held()
            yield from self._drain()
            self._finish()
        except ChildTimeoutError as error:
            self._outcome = "timed out"
            raise ConnectionResetError(ECONNRESET, "Git made no progress.") from error
        except (HTTPException, ParseException, TimeoutError, DomainError) as error:
            self._outcome = "bad body"
            raise ConnectionResetError(ECONNRESET, "The body did not arrive.") from error
        finally:
            self.close()

    def close(self) -> None:
        """End the child, give back its slot and write a line into the log; idempotent."""
        if not self._end.alive:
            return
        leave_body(self._plan.environ, has_ended=self._has_read_all)
        status, said = self._end() or (None, "")
        count_git_transfer(self._plan.service, self._outcome)
        _log.info(
            "git transfer",
            extra={
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

    def _feed(self) -> None:
        """Give the client's body to the child, until it ends or the child has written a lot."""
        for piece in self._plan.pieces:
            self._check_time()
            self._received += len(piece)
            self._held += self._child.write(piece)
            sleep(0)  # others want their turn as well
            if len(self._held) > _MOST_HELD:
                return
        self._has_read_all = True
        self._child.end_input()

    def _drain(self) -> Iterator[bytes]:
        if self._held:
            yield self._take_held()
        while piece := self._child.read():
            self._check_time()
            yield self._counted(piece)
            sleep(0)

    def _finish(self) -> None:
        status = self._child.wait(_EXIT_SECONDS)
        self._outcome = "done" if status == 0 else "failed"
        if status == 0 and self._plan.when_done:
            self._plan.when_done()

    def _take_held(self) -> bytes:
        held = bytes(self._held)
        self._held.clear()
        return self._counted(held)

    def _counted(self, piece: bytes) -> bytes:
        self._sent += len(piece)
        if self._plan.when_pack_begins and not self._has_pack:
            self._look_for_pack(piece, self._plan.when_pack_begins)
        return piece

    def _look_for_pack(self, piece: bytes, announce: Callable[[], None]) -> None:
        seen = self._tail + piece
        self._tail = seen[1 - len(_PACK_BEGINS) :]
        if _PACK_BEGINS in seen:
            self._has_pack, self._tail = True, b""
            announce()

    def _check_time(self) -> None:
        if monotonic() - self._began_at > self._plan.seconds:
            raise ChildTimeoutError


def _end(child: Child, slot: ProcessSlot) -> tuple[int, str]:
    """End a child; return its exit status and the last part of its error output."""
    try:
        status, said = child.end(), ""
        with suppress(OSError, ValueError):
            said = child.errors()
        return status, said
    finally:
        slot.release()
