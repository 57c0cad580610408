"""What everybody may read, anybody may cache: for minutes, and after that by its ETag."""

from hashlib import blake2b

from flask import Response, request

_SECONDS = 300
_ETAG_BYTES = 16


def let_everybody_cache(response: Response) -> Response:
    """Let shared caches keep a response that is the same for everybody."""
    response.cache_control.public = True
    response.cache_control.max_age = _SECONDS
    return response


def cached_document(content: bytes, content_type: str) -> Response:
    """Return a document with an ETag, or 304 to a client that has it (RFC 9110 section 13)."""
    response = Response(content, content_type=content_type)
    response.set_etag(blake2b(content, digest_size=_ETAG_BYTES).hexdigest())
    let_everybody_cache(response)
    response.make_conditional(request.environ)
    return response
