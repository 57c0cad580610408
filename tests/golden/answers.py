"""Turns responses into values that are the same each time: random parts get a placeholder."""

import hashlib
import json
import re
from datetime import UTC, datetime, timedelta
from typing import Any

from werkzeug.test import TestResponse

_HEADERS_LEFT_OUT = {
    *("x-request-id", "content-length", "etag", "date", "server-timing", "x-runtime"),
    *("ratelimit-remaining", "ratelimit-reset", "ratelimit-observed", "last-modified"),
}
#: Placeholders of random values.
_RANDOM = (
    (re.compile(r"\?v=[\w.-]+"), "?v=<version>"),
    (re.compile(r"\bgb[a-z]{1,2}-\w+"), "<credential>"),
    (re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b"), "<uuid>"),
    (re.compile(r'(?<=class="qr" ).*'), "<picture>"),
    (re.compile(r"\b[\d.]+ ms\b"), "<time>"),
    (re.compile(r"^((?:process|python_gc|gatebell_http)_.*) \S+$", re.MULTILINE), r"\1"),
    (re.compile(r"whsec_[\w+/]+=*"), "<credential>"),
    (re.compile(r"(?<=_bot_)[0-9a-f]{16,}"), "<hex>"),
    (re.compile(r"\b(?:[A-Z0-9]{4}:){11}[A-Z0-9]{4}\b"), "<key id>"),
    (re.compile(r'(?<="duration_us": )\d+|(?<="duration": )\d+'), "0"),
    (re.compile(r"(?<=^duration)( +)\d+", re.MULTILINE), r"\1 0"),
    (re.compile(r"\beyJ[\w-]+\.[\w-]+\.[\w-]*"), "<token>"),
    (re.compile(r"(?<=nonce-)[\w+/=-]+"), "<nonce>"),
    (re.compile(r'(?<=nonce=")[^"]+'), "<nonce>"),
    (re.compile(r'(?<=name="csrf_token" value=")[^"]+'), "<csrf>"),
    (re.compile(r'(?<=csrf_token" type="hidden" value=")[^"]+'), "<csrf>"),
    (re.compile(r"\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{12,}\b"), "<hex>"),
    (re.compile(r"\b\d{16}\b"), "<hex>"),
    (re.compile(r"\b[a-z0-9]{6}(-[a-z0-9]{6}){3}\b"), "<password>"),
    (re.compile(r"\b[BCDFGHJKLMNPQRSTVWXZ]{4}-[BCDFGHJKLMNPQRSTVWXZ]{4}\b"), "<user code>"),
    (re.compile(r"\b(?=[\w.-]*\d)(?=[\w.-]*[a-z])(?=[\w.-]*[A-Z])[\w.-]{24,}"), "<opaque>"),
)
#: Names of durations, which are numbers.
_MEASURED = {"duration", "duration_us"}
_TEXTS = (
    "text/",
    "application/atom",
    "application/json",
    "application/xml",
    "image/svg",
    "application/x-ndjson",
)


class Normalizer:
    """Replaces differences between two recordings of the same checkout."""

    def __init__(self, folder: str) -> None:
        """Take the folder of the instance, which error messages may contain."""
        today = datetime.now(UTC)
        days = (f"{today + timedelta(days=offset):%Y-%m-%d}" for offset in (-1, 0, 1))
        #: Times that the database or a library takes from the clock of the machine.
        real = re.compile(rf"(?:{'|'.join(days)})[T ]?[\d:.]*(?:Z|\+00:00)?")
        self._replaced = (
            (re.compile(re.escape(folder)), "<folder>"),
            (re.compile(rf"(?<=Expires=)[^;]*{today:%Y}[^;]*"), "<real time>"),
            (real, "<real time>"),
            *_RANDOM,
        )

    def read(self, answer: TestResponse) -> dict[str, Any]:
        """Return status, headers and body of a response."""
        headers = sorted(
            [name, ", ".join(sorted(value.split(", "))) if name == "Allow" else value]
            for name, value in answer.headers.items()
            if name.lower() not in _HEADERS_LEFT_OUT
        )
        return {"status": answer.status_code, "headers": headers, "body": _body(answer)}

    def normalized(self, value: Any) -> Any:
        """Return a value without its random parts."""
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, dict):
            return {
                name: 0 if name in _MEASURED and isinstance(inner, int) else self.normalized(inner)
                for name, inner in value.items()
            }
        return [self.normalized(each) for each in value] if isinstance(value, list) else value

    def _text(self, text: str) -> str:
        for pattern, placeholder in self._replaced:
            text = pattern.sub(placeholder, text)
        return text


def _body(answer: TestResponse) -> Any:
    if not answer.data:
        return ""
    kind = answer.mimetype or ""
    if kind.endswith("json"):
        try:
            return json.loads(answer.data)
        except ValueError:
            return answer.text
    if kind.startswith(_TEXTS):
        return answer.text
    return f"{len(answer.data)} bytes {hashlib.sha256(answer.data).hexdigest()[:12]}"
