"""The REST API, under /api/v4."""

from flask import Blueprint

from blueprints.api_v4 import (
    access_tokens,
    alert_integrations,
    alerts,
    audit_events,
    commits,
    instance,
    projects,
    registry_repositories,
    release_schedule,
    reports,
    resources,
    users,
)
from web.access.bearer_token import PRIVATE_TOKEN_HEADER
from web.api import idempotency
from web.api.callers import SUDO_HEADER
from web.api.list_response_headers import IGNORED_PARAMETERS_HEADER
from web.http.cors import RATE_LIMIT_HEADERS, SIMPLE_HEADERS, CorsPolicy
from web.http.endpoints import ApiClientBlueprint, ErrorFormat
from web.releases import requested_release
from web.releases.usage_recording import record_failed_call

api_v4 = ApiClientBlueprint(
    "api_v4",
    __name__,
    url_prefix="/api/v4",
    errors=ErrorFormat.API,
    # The API accepts no cookies, so a script can do no more than the owner of its token. Scripts
    # can send all headers that the API reads, except DPoP, because scripts on other origins cannot
    # obtain DPoP tokens.
    cross_origin=CorsPolicy(
        methods=("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"),
        headers=(
            *SIMPLE_HEADERS,
            *(
                PRIVATE_TOKEN_HEADER,
                SUDO_HEADER,
                idempotency.IDEMPOTENCY_KEY_HEADER,
                "If-None-Match",
                requested_release.RELEASE_HEADER,
            ),
        ),
        exposed=(
            *("Link", "X-Total", "X-Total-Pages", "X-Page", "X-Per-Page", "X-Next-Page"),
            *("X-Prev-Page", "ETag", "Deprecation", "Sunset"),
            *RATE_LIMIT_HEADERS,
            IGNORED_PARAMETERS_HEADER,
        ),
    ),
)
api_v4.after_request(record_failed_call)
for _module in (
    *(instance, release_schedule, users, access_tokens, projects, resources),
    *(audit_events, commits, registry_repositories, alerts, alert_integrations, reports),
):
    for _each in vars(_module).values():
        if isinstance(_each, Blueprint):
            api_v4.register_blueprint(_each)
