"""Compresses pages and static files with gzip (RFC 9110 section 8.4.1.3), and nothing else.

An attacker who makes a browser request a page with chosen texts, and sees the length of the
encrypted response, can guess the rest of a compressed page (BREACH). So a page is compressed only
if the request came from this site, and never if the page shows a secret (ADR 56).
"""

import gzip
from functools import lru_cache, partial
from http import HTTPStatus
from pathlib import Path

from flask import Flask, Response, request
from werkzeug.security import safe_join

from domain.core.threads import reading
from web.http.endpoints import STATIC_FILES, page_blueprints

#: Bytes from which a response takes fewer packets.
_LEAST = 1024
#: Bytes that are compressed within a millisecond or two.
_SHORT = 128 * 1024
_PAGE_LEVEL, _FILE_LEVEL = 5, 9
_TEXTS = frozenset({"text/css", "text/javascript", "application/javascript", "image/svg+xml"})
#: `Sec-Fetch-Site` of requests that no other site can cause (W3C Fetch Metadata): links of this
#: site, and addresses that somebody typed or kept.
_OWN_REQUESTS = frozenset({"same-origin", "none"})


def compress_pages_and_files(app: Flask) -> None:
    """Compress responses of pages and static files; call it when the blueprints are registered."""
    for name in page_blueprints(app):
        app.after_request_funcs.setdefault(name, []).append(_compress_page)
    app.view_functions[STATIC_FILES] = partial(_static_file, app)


def _compress_page(response: Response) -> Response:
    if response.mimetype != "text/html" or response.is_streamed or response.content_encoding:
        return response  # no page, or compressed for a blueprint within this one
    response.vary.update(("Accept-Encoding", "Sec-Fetch-Site"))
    if not (_takes_gzip() and _is_asked_for_here()) or response.cache_control.no_store:
        return response
    body = response.get_data()
    if len(body) >= _LEAST:
        response.set_data(_packed(body))
        response.headers["Content-Encoding"] = "gzip"
    return response


def _takes_gzip() -> bool:
    return request.accept_encodings["gzip"] > 0


def _is_asked_for_here() -> bool:
    """Return whether this site or its user asks, as browsers say under TLS; http hides nothing."""
    return not request.is_secure or request.headers.get("Sec-Fetch-Site") in _OWN_REQUESTS


def _packed(body: bytes) -> bytes:
    pack = partial(gzip.compress, body, _PAGE_LEVEL, mtime=0)
    return pack() if len(body) <= _SHORT else reading.run(pack)


def _static_file(app: Flask, filename: str) -> Response:
    plain = app.send_static_file(filename)
    if plain.mimetype not in _TEXTS:
        return plain
    plain.vary.add("Accept-Encoding")
    if plain.status_code != HTTPStatus.OK or not _takes_gzip() or "Range" in request.headers:
        return plain
    path = Path(safe_join(str(app.static_folder), filename) or "")
    packed = reading.run(_packed_file, path, path.stat().st_mtime_ns)
    plain.close()
    response = Response(packed, headers=plain.headers)
    response.headers["Content-Encoding"] = "gzip"
    response.content_length = len(packed)
    # The same content in another form; a browser that has either of them gets a 304.
    response.set_etag(plain.get_etag()[0] or "", weak=True)
    return response


@lru_cache(maxsize=64)
def _packed_file(path: Path, _changed_at: int) -> bytes:
    return gzip.compress(path.read_bytes(), _FILE_LEVEL, mtime=0)
