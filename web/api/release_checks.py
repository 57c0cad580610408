"""Reads what is handed to the release checker, and runs it; nothing of it is stored or logged."""

from io import BytesIO
from threading import BoundedSemaphore
from typing import Any

from flask import request
from werkzeug.formparser import FormDataParser

from domain import threads
from domain.errors import InvalidError, TooManyAttemptsError
from domain.releases.checker.checker import check_text, decoded
from domain.releases.checker.findings import Report
from domain.releases.version import Release
from web.api.parameters import json_object, pairs_of
from web.http.request_bodies import read_bounded
from web.services import settings

#: Texts that one process holds, the one that is being read included.
_MOST_AT_ONCE = 6
_RETRY_AFTER_SECONDS = 5
#: Of processor time for one text.
_SECONDS = 2.0
_MOST_PARTS = 20
_FORMS = frozenset({"multipart/form-data", "application/x-www-form-urlencoded"})
_at_once = BoundedSemaphore(_MOST_AT_ONCE)


def handed_in() -> dict[str, Any]:
    """Return `name`, `content` and `release` of the body: JSON, or a form with `file`.

    Raises BodyTooLargeError above the limit. Files stay in memory, where forms of pages may be
    written to a temporary file.
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


def run_check(name: str, content: str, release: Release) -> Report:
    """Return the report on a text, made in a thread; raise TooManyAttemptsError if many wait."""
    if not content.strip() and not name:
        raise InvalidError("content is empty.", field="content")
    if not _at_once.acquire(blocking=False):
        message = "The release checker is busy. Try again in a moment."
        raise TooManyAttemptsError(message, retry_after=_RETRY_AFTER_SECONDS)
    try:
        return threads.checking.run(check_text, name, content, release, seconds=_SECONDS)
    finally:
        _at_once.release()
