"""Runs the release checker on submitted content, which is neither stored nor logged."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from io import BytesIO
from threading import BoundedSemaphore, Lock
from typing import Any

from flask import request
from werkzeug.formparser import FormDataParser

from domain.core import thread_pools
from domain.core.errors import InvalidError, TooManyAttemptsError
from domain.releases.checker.findings import CheckReport
from domain.releases.checker.text_checks import check_text, decode_file
from domain.releases.version import Release
from web.api.parameters import collect_parameter_pairs, parse_json_object
from web.http.extensions import get_client_address
from web.http.request_bodies import read_limited_body
from web.services import get_settings

#: Maximum number of texts in a process that are being checked or are waiting to be checked.
_MAX_CONCURRENT_CHECKS = 6
_RETRY_AFTER_SECONDS = 5
#: Maximum processor time for a text, in seconds.
_CHECK_SECONDS = 2.0
_MAX_FORM_PARTS = 20
_FORM_MEDIA_TYPES = frozenset({"multipart/form-data", "application/x-www-form-urlencoded"})
_check_slots = BoundedSemaphore(_MAX_CONCURRENT_CHECKS)
#: Maximum number of texts from anonymous callers in one process, in total and per IP address. The
#: remaining slots are reserved for authenticated users.
_MAX_ANONYMOUS_CHECKS = 2
_MAX_CHECKS_PER_ADDRESS = 1


def read_check_parameters() -> dict[str, Any]:
    """Return `name`, `content` and `release` from a JSON body, or from a form with `file`.

    Raise BodyTooLargeError if the body exceeds the limit. An uploaded file is kept in memory and
    never written to a temporary file.
    """
    received = read_limited_body(get_settings().release_check_limit_bytes)
    received.raise_for_error()
    query = collect_parameter_pairs(request.args)
    if request.mimetype in _FORM_MEDIA_TYPES:
        return {**query, **_parse_form(received.content)}
    return {**query, **parse_json_object(received.content)}


def _parse_form(content: bytes) -> dict[str, Any]:
    parser = FormDataParser(
        stream_factory=lambda *_, **__: BytesIO(),
        max_form_memory_size=len(content),
        max_form_parts=_MAX_FORM_PARTS,
    )
    stream = BytesIO(content)
    _, form, files = parser.parse(
        stream, request.mimetype, len(content), dict(request.mimetype_params)
    )
    found = collect_parameter_pairs(form)
    file = files.get("file")
    if file is not None and (file.filename or not found.get("content")):
        found["content"] = decode_file(file.read())
        found["name"] = found.get("name") or file.filename or ""
    return found


class _AnonymousCheckSlots:
    """Counter of the checks in progress for anonymous callers, by IP address."""

    def __init__(self) -> None:
        self._held: Counter[str] = Counter()
        self._lock = Lock()

    @contextmanager
    def hold_slot(self, address: str) -> Iterator[None]:
        """Hold a slot for an address during a check.

        Raise TooManyAttemptsError if no slot is free.
        """
        with self._lock:
            if (
                self._held.total() >= _MAX_ANONYMOUS_CHECKS
                or self._held[address] >= _MAX_CHECKS_PER_ADDRESS
            ):
                message = (
                    "Too many release checks without a token are running. Wait until a check has "
                    "finished, or send a token."
                )
                raise TooManyAttemptsError(message, retry_after=_RETRY_AFTER_SECONDS)
            self._held[address] += 1
        try:
            yield
        finally:
            with self._lock:
                self._held[address] -= 1
                self._held += Counter()  # Remove addresses that have no active check.


_anonymous_slots = _AnonymousCheckSlots()


def run_release_check(
    name: str, content: str, release: Release, *, is_anonymous: bool
) -> CheckReport:
    """Check content in a thread, and return the report.

    Raise InvalidError if the content is empty, and TooManyAttemptsError if too many checks are
    running.
    """
    if not content.strip() and not name:
        raise InvalidError("`content` is empty.", field="content")
    with _anonymous_slots.hold_slot(get_client_address()) if is_anonymous else nullcontext():
        return _run_in_thread(name, content, release)


def _run_in_thread(name: str, content: str, release: Release) -> CheckReport:
    if not _check_slots.acquire(blocking=False):
        message = "The release checker is busy. Try again in a moment."
        raise TooManyAttemptsError(message, retry_after=_RETRY_AFTER_SECONDS)
    try:
        return thread_pools.checking_pool.run_task(
            check_text, name, content, release, seconds=_CHECK_SECONDS
        )
    finally:
        _check_slots.release()
