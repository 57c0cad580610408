"""GET /api/openapi.json: the description of all interfaces for programs."""

from hashlib import blake2b
from typing import NamedTuple

import orjson
from flask import Response, current_app, request

from domain import threads
from web.access.marks import open_to_anyone
from web.api.description.described import METADATA, Description, described
from web.api.description.document import Edition, openapi_document
from web.api.schemas.openapi import OpenApiDocument
from web.http.cors import CorsPolicy
from web.http.endpoints import ErrorFormat, MachineBlueprint
from web.http.json_responses import written_json_response
from web.services import services
from web.settings.reader import Settings

api_description = MachineBlueprint("api_description", __name__, errors=ErrorFormat.API)
_ETAG_BYTES = 16


class _Written(NamedTuple):
    """The description as it is sent."""

    content: bytes
    etag: str


@api_description.get("/api/openapi.json")
@described(
    Description(name="metadata.openapi", tag=METADATA, returns=OpenApiDocument, is_conditional=True)
)
@open_to_anyone.but(cross_origin=CorsPolicy())
def openapi() -> Response:
    """Return this description."""
    written = services().live_settings.derived(_write)
    response = written_json_response(written.content)
    response.headers["Cache-Control"] = "public, no-cache"
    response.set_etag(written.etag)
    response.make_conditional(request.environ)
    return response


def _write(settings: Settings) -> _Written:
    """Write the description once, and again when a setting has changed."""
    edition = Edition(
        base_url=settings.base_url,
        instance_name=settings.instance_name,
        release=settings.release,
    )
    # In a thread: it takes a tenth of a second, in which other requests go on.
    app = current_app._get_current_object()  # type: ignore[attr-defined]  # noqa: SLF001 - the proxy's own
    content = orjson.dumps(threads.reading.run(openapi_document, app, edition))
    return _Written(content, blake2b(content, digest_size=_ETAG_BYTES).hexdigest())
