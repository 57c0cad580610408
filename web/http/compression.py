"""Compresses only pages and static files, with gzip (RFC 9110 section 8.4.1.3).

In a BREACH attack, a browser requests a page with text that the attacker chooses. The length of the
compressed page then reveals its content. A page is therefore compressed only if the request came
from this site. Pages that show a secret are never compressed (ADR 56).
"""

import gzip
from functools import lru_cache, partial
from http import HTTPStatus
from pathlib import Path

from flask import Flask, Response, request
from werkzeug.security import safe_join

from domain.core.thread_pools import parsing_pool
from web.http.endpoints import STATIC_ENDPOINT

#: Minimum size of compressed responses in bytes. Compressing smaller responses saves no packets.
_MIN_BYTES = 1024
#: Maximum size in bytes of pages that are compressed without a separate thread. The compression
#: then takes at most about two milliseconds.
_MAX_INLINE_BYTES = 128 * 1024
_PAGE_LEVEL, _FILE_LEVEL = 5, 9
_TEXT_MEDIA_TYPES = frozenset(
    {"text/css", "text/javascript", "application/javascript", "image/svg+xml"}
)
#: `Sec-Fetch-Site` values of requests that no other site can cause (W3C Fetch Metadata). Such
#: requests come from links on this site, and from URLs that the user typed or bookmarked.
_SAME_SITE_VALUES = frozenset({"same-origin", "none"})


def compress_static_files(app: Flask) -> None:
    """Replace Flask's view for static files with a view that compresses them."""
    app.view_functions[STATIC_ENDPOINT] = partial(_send_static_file, app)


def compress_page(response: Response) -> Response:
    """Compress a page unless the request may have been caused by another site."""
    if response.mimetype != "text/html" or response.is_streamed or response.content_encoding:
        return response  # not a web page, or already compressed by the hook of a nested blueprint
    response.vary.update(("Accept-Encoding", "Sec-Fetch-Site"))
    if not (_accepts_gzip() and _is_same_site_request()) or response.cache_control.no_store:
        return response
    body = response.get_data()
    if len(body) >= _MIN_BYTES:
        response.set_data(_compress_body(body))
        response.headers["Content-Encoding"] = "gzip"
    return response


def _accepts_gzip() -> bool:
    return request.accept_encodings["gzip"] > 0


def _is_same_site_request() -> bool:
    """Return whether this site or its user caused the request, according to the browser.

    Browsers report this only under TLS. Always return True over plain http, where the content is
    not secret anyway.
    """
    return not request.is_secure or request.headers.get("Sec-Fetch-Site") in _SAME_SITE_VALUES


def _compress_body(body: bytes) -> bytes:
    pack = partial(gzip.compress, body, _PAGE_LEVEL, mtime=0)
    return pack() if len(body) <= _MAX_INLINE_BYTES else parsing_pool.run_task(pack)


def _send_static_file(app: Flask, filename: str) -> Response:
    plain = app.send_static_file(filename)
    if plain.mimetype not in _TEXT_MEDIA_TYPES:
        return plain
    plain.vary.add("Accept-Encoding")
    if plain.status_code != HTTPStatus.OK or not _accepts_gzip() or "Range" in request.headers:
        return plain
    path = Path(safe_join(str(app.static_folder), filename) or "")
    packed = parsing_pool.run_task(_compress_file, path, path.stat().st_mtime_ns)
    plain.close()
    response = Response(packed, headers=plain.headers)
    response.headers["Content-Encoding"] = "gzip"
    response.content_length = len(packed)
    # The compressed and the plain file have the same content, so a browser with either file
    # receives a 304.
    response.set_etag(plain.get_etag()[0] or "", weak=True)
    return response


@lru_cache(maxsize=64)
def _compress_file(path: Path, _changed_at: int) -> bytes:
    return gzip.compress(path.read_bytes(), _FILE_LEVEL, mtime=0)
