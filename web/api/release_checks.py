"""Runs the release checker on submitted texts, which are neither stored nor logged."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from io import BytesIO
from threading import BoundedSemaphore, Lock
from typing import Any

from flask import request
from werkzeug.formparser import FormDataParser

from domain.core import threads
from domain.core.errors import InvalidError, TooManyAttemptsError
from domain.releases.checker.checker import check_text, decoded
from domain.releases.checker.findings import Report
from domain.releases.version import Release
from web.api.parameters import json_object, pairs_of
from web.http.extensions import client_address
from web.http.request_bodies import read_bounded
from web.services import settings

#: Maximum number of texts that one process holds at the same time.
_MOST_AT_ONCE = 6
_RETRY_AFTER_SECONDS = 5
#: Limit of processor time for one text, in seconds.
_SECONDS = 2.0
_MOST_PARTS = 20
_FORMS = frozenset({"multipart/form-data", "application/x-www-form-urlencoded"})
_at_once = BoundedSemaphore(_MOST_AT_ONCE)
#: Maximum number of texts from anonymous callers in one process, in total and per IP address. The
#: remaining slots are for users.
_MOST_ANONYMOUS = 2
_MOST_OF_ADDRESS = 1


def handed_in() -> dict[str, Any]:
    """Return `name`, `content` and `release` of the body, which is JSON or a form with `file`.

    Raise BodyTooLargeError if the body exceeds the limit. Files stay in memory, whereas forms of
    pages may be written to a temporary file.
    """
    received = read_bounded(settings().release_check_limit_bytes)
    received.check()
    query = pairs_of(request.args)
    if request.mimetype in _FORMS:
        return {**query, **_of_form(received.content)}
    return {**query, **json_object(received.content)}


def _of_form(content: bytes) -> dict[str, Any]:
    parser = FormDataParser(
        stream_factory=lambda *_, **__: BytesIO(),
        max_form_memory_size=len(content),
        max_form_parts=_MOST_PARTS,
    )
    stream = BytesIO(content)
    _, form, files = parser.parse(
        stream, request.mimetype, len(content), dict(request.mimetype_params)
    )
    found = pairs_of(form)
    file = files.get("file")
    if file is not None and (file.filename or not found.get("content")):
        found["content"] = decoded(file.read())
        found["name"] = found.get("name") or file.filename or ""
    return found


class _AnonymousPlaces:
    """Counter of the active checks of anonymous callers by IP address."""

    def __init__(self) -> None:
        self._held: Counter[str] = Counter()
        self._lock = Lock()

    @contextmanager
    def hold(self, address: str) -> Iterator[None]:
        """Hold a slot for an address during a check.

        Raise TooManyAttemptsError if no slot is free.
        """
        with self._lock:
            if self._held.total() >= _MOST_ANONYMOUS or self._held[address] >= _MOST_OF_ADDRESS:
                message = (
                    "The release checker is busy with requests without a token. Wait until your "
                    "other check has finished, or send a token."
                )
                raise TooManyAttemptsError(message, retry_after=_RETRY_AFTER_SECONDS)
            self._held[address] += 1
        try:
            yield
        finally:
            with self._lock:
                self._held[address] -= 1
                self._held += Counter()  # drops addresses without a check


_anonymous = _AnonymousPlaces()


def run_check(name: str, content: str, release: Release, *, is_anonymous: bool) -> Report:
    """Check a text in a thread and return the report.

    Raise TooManyAttemptsError if too many texts are waiting.
    """
    if not content.strip() and not name:
        raise InvalidError("`content` is empty.", field="content")
    with _anonymous.hold(client_address()) if is_anonymous else nullcontext():
        return _run(name, content, release)


def _run(name: str, content: str, release: Release) -> Report:
    if not _at_once.acquire(blocking=False):
        message = "The release checker is busy. Try again in a moment."
        raise TooManyAttemptsError(message, retry_after=_RETRY_AFTER_SECONDS)
    try:
        return threads.checking.run(check_text, name, content, release, seconds=_SECONDS)
    finally:
        _at_once.release()
