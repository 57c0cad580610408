"""The API description: /api/openapi.json for clients, /help/api for people.

GraphQL clients receive an error that refers them to the REST API.
"""

from collections.abc import Mapping
from hashlib import blake2b
from http import HTTPStatus
from itertools import groupby
from typing import Any, NamedTuple

import orjson
from flask import Response, current_app, render_template, request, url_for
from flask.typing import ResponseReturnValue

from domain.core import thread_pools
from domain.core.errors import NotFoundError
from domain.core.types.validation import validate_query
from web.access.decorators import open_to_anyone
from web.api.openapi.openapi_document import (
    InstanceDetails,
    build_openapi_document,
    select_operations_by_tag,
)
from web.api.openapi.view_descriptions import METADATA, ViewDescription
from web.api.openapi.views import DescribedView, list_described_views
from web.api.schemas.errors import OpenApiDocument, OpenApiQuery
from web.http.cors import CorsPolicy
from web.http.endpoints import ApiClientBlueprint, ErrorFormat, PageBlueprint
from web.http.json_responses import build_json_response, build_serialized_response
from web.http.public_urls import build_public_url
from web.services import get_services
from web.settings.environment import Settings

api_description = ApiClientBlueprint("api_description", __name__, errors=ErrorFormat.API)
# The authorization page opens in its own window and redirects back to the API viewer.
api_viewer = PageBlueprint(
    "api_viewer", __name__, url_prefix="/help/api", leads_to_applications=True
)
_ETAG_BYTES = 16


class _SerializedDescription(NamedTuple):
    """The OpenAPI description as serialized JSON, and its ETag."""

    content: bytes
    etag: str


class _Topic(NamedTuple):
    """A topic of the API description, with all operations that have its tag."""

    tag: str
    views: list[DescribedView]


@api_description.get("/api/openapi.json")
@ViewDescription(
    name="metadata.openapi",
    tag=METADATA,
    query=OpenApiQuery,
    returns=OpenApiDocument,
    errors=(400, 404),
    is_conditional=True,
)
@open_to_anyone.with_changes(cross_origin=CorsPolicy(), is_heavy=True)
def openapi() -> Response:
    """Return the OpenAPI description of the whole API or of a single tag."""
    tag = validate_query(OpenApiQuery, dict(request.args.lists())).tag
    written = get_services().live_settings.get_derived_value(_serialize_description)
    if tag is not None:
        document = orjson.loads(written.content)
        if tag not in [each["name"] for each in document["tags"]]:
            raise NotFoundError("No operation has this tag.")
        written = _build_serialized_description(select_operations_by_tag(document, tag))
    response = build_serialized_response(written.content)
    response.headers["Cache-Control"] = "public, no-cache"
    response.set_etag(written.etag)
    response.make_conditional(request.environ)
    return response


@api_description.route("/api/graphql", methods=["GET", "POST"])
@open_to_anyone.with_changes(cross_origin=CorsPolicy(methods=("GET", "HEAD", "POST")))
def graphql() -> Response:
    """Return a GraphQL error that refers to the REST API."""
    differences = build_public_url(url_for("help_pages.document", name="differences-from-gitlab"))
    message = (
        f"There is no GraphQL API. Use the REST API at {build_public_url('/api/v4')}. See "
        f"{differences} "
        "for other differences from GitLab."
    )
    return build_json_response({"errors": [{"message": message}]}, status=HTTPStatus.NOT_FOUND)


def _serialize_description(settings: Settings) -> _SerializedDescription:
    """Return the serialized description, which is rebuilt after a setting changes."""
    edition = InstanceDetails(
        base_url=settings.base_url,
        instance_name=settings.instance_name,
        release=settings.release,
    )
    # Building the description takes a tenth of a second, so it runs in a thread to avoid blocking
    # other requests.
    app = current_app._get_current_object()  # type: ignore[attr-defined]  # noqa: SLF001 - the proxy's own
    return _build_serialized_description(
        thread_pools.parsing_pool.run_task(build_openapi_document, app, edition)
    )


def _build_serialized_description(document: Mapping[str, Any]) -> _SerializedDescription:
    content = orjson.dumps(document)
    return _SerializedDescription(content, blake2b(content, digest_size=_ETAG_BYTES).hexdigest())


@api_viewer.get("", endpoint="show")
@open_to_anyone
def show_description() -> ResponseReturnValue:
    """Show a list of all operations by topic."""
    return render_template(
        "help/api.html", topics=get_services().live_settings.get_derived_value(_group_operations)
    )


@api_viewer.get("/<topic>", endpoint="topic")
@open_to_anyone
def show_topic(topic: str) -> ResponseReturnValue:
    """Show the operations of a topic, as a plain list if scripts are disabled."""
    found = get_services().live_settings.get_derived_value(_group_operations).get(topic)
    if found is None:
        raise NotFoundError("Help page not found.")
    return render_template(
        "help/api_topic.html",
        topic=found,
        callback=build_public_url(url_for("api_viewer.authorized")),
    )


@api_viewer.get("/authorized")
@open_to_anyone
def authorized() -> ResponseReturnValue:
    """Pass the authorization code to the API viewer. This page is the viewer's redirect URI."""
    return render_template("help/authorized.html")


def _group_operations(settings: Settings) -> Mapping[str, _Topic]:
    """Return all operations, grouped by the URL segment of their tag."""
    del settings  # the URL map does not depend on the settings
    views = sorted(
        list_described_views(current_app),
        key=lambda each: (each.tag, each.path.template, each.method),
    )
    return {
        tag.lower().replace(" ", "-"): _Topic(tag, list(found))
        for tag, found in groupby(views, key=lambda each: each.tag)
    }
