"""Binds the authorization server to Flask: its requests and its responses."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, cast
from urllib.parse import parse_qs

from flask import Response, has_request_context, request
from flask.typing import ResponseReturnValue
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Session
from werkzeug.datastructures import Headers, MultiDict
from werkzeug.utils import redirect

from domain.accounts.signing_in.sessions import RequestSource
from domain.audit.events import EventSource
from domain.oauth.context import OAuthContext, RefusedRequest
from domain.oauth.json_bodies import parameters_in
from domain.oauth.protocol import OAuthResponse, ProtocolRequest
from domain.oauth.setting_up.refusals import flush, store_refusal
from web.extensions import db
from web.http.audit_events import event_source
from web.http.error_formats import explained
from web.http.json_responses import json_response
from web.services import services
from web.settings import policies

#: The headers that the endpoints read, with their WSGI names.
_HEADERS = {"Authorization": "HTTP_AUTHORIZATION", "DPoP": "HTTP_DPOP"}
_PLAIN_FORM = "application/x-www-form-urlencoded"
_JSON = "application/json"
#: In bytes: there is nothing to send that comes near it.
_LONGEST_JSON = 65_536
#: In bytes; Werkzeug has limits of its own for longer ones.
_LONGEST_PLAIN_FORM = 65_536
#: Of each application and reason, in each process: the other refused requests are counted.
_ROWS_PER_MINUTE = 5


def oauth_context() -> OAuthContext:
    """Return the collaborators of this request."""
    own, source = services(), RequestSource(address=None, user_agent=None)
    if has_request_context():  # and no command of the operator's, for example
        agent = request.environ.get("HTTP_USER_AGENT", "")
        source = RequestSource(address=request.remote_addr, user_agent=agent)
    return OAuthContext(
        # The registry of sessions in the place of one: it opens one when it is first asked.
        session=cast("Session", db.session),
        connection=own.connections,
        has_begun=_has_begun,
        keyring=own.keyring,
        now=own.clock(),
        policy=own.live_settings.derived(policies.oauth_policy),
        source=source,
        event_source=_event_source,
        record_refusal=_record_refusal,
    )


def _event_source() -> EventSource:
    return event_source() if has_request_context() else EventSource()


def _has_begun() -> bool:
    return db.session.registry.has() and db.session().in_transaction()


def _record_refusal(refused: RefusedRequest, context: OAuthContext) -> None:
    """Store a refused request, or count it; the client gets its answer in any case."""
    if context.has_begun():  # what is stored there is part of the answer
        _sample(refused, context)
        return
    with suppress(DBAPIError):
        _sample(refused, context)


def _sample(refused: RefusedRequest, context: OAuthContext) -> None:
    sampler = services().token_refusals
    kind = (refused.application_id, refused.reason.name)
    if sampler.gets_row(kind, now=context.now, per_minute=_ROWS_PER_MINUTE):
        row_id = store_refusal(refused, context=context)
        flush(sampler.use_row(kind, row_id), context=context)
    flush(sampler.due(now=context.now), context=context)


def request_in_form() -> ProtocolRequest:
    """Return the request of a JSON endpoint: its parameters are in the body, never in the URL.

    That is a form or a JSON object.
    """
    environ = request.environ
    headers = {name: environ[key] for name, key in _HEADERS.items() if key in environ}
    parameters: Mapping[str, Sequence[str]] = {}
    is_read = "form" in vars(request)  # and with it the body
    is_short = 0 < (request.content_length or 0) <= _LONGEST_PLAIN_FORM
    if request.content_type == _PLAIN_FORM and is_short and not is_read:
        # Without Werkzeug's overhead for uploads.
        with suppress(UnicodeDecodeError):
            text = request.get_data().decode()
            parameters = parse_qs(text, keep_blank_values=True, errors="werkzeug.url_quote")
    elif request.mimetype == _JSON:
        request.max_content_length = min(request.max_content_length or _LONGEST_JSON, _LONGEST_JSON)
        parameters = parameters_in(request.get_data())
    else:
        parameters = _lists(request.form)
    return ProtocolRequest("POST", parameters, headers)


def request_in_query() -> ProtocolRequest:
    """Return the request of the authorization endpoint."""
    return ProtocolRequest("GET", _lists(request.args), {})


def request_from(parameters: Mapping[str, Sequence[str]]) -> ProtocolRequest:
    """Return an authorization request that was checked before and stored since."""
    return ProtocolRequest("GET", parameters, {})


def _lists(values: MultiDict[str, str]) -> dict[str, list[str]]:
    return {name: values.getlist(name) for name in values}


class _VerbatimRedirect(Response):
    """Redirects to the URI of the application as registered; Werkzeug would rewrite it."""

    def get_wsgi_headers(self, environ: dict[str, Any]) -> Headers:
        """Return the headers with Location as it was set."""
        headers = super().get_wsgi_headers(environ)
        headers["Location"] = self.headers["Location"]
        return headers


def send(oauth_response: OAuthResponse) -> ResponseReturnValue:
    """Return the HTTP response for a response of the protocol."""
    location = next((value for name, value in oauth_response.headers if name == "Location"), None)
    if location is not None:
        return redirect(location, code=oauth_response.status, Response=_VerbatimRedirect)
    body = oauth_response.body
    if not isinstance(body, str) and "error" in body:
        body = explained(body)
    response = json_response(body, oauth_response.status)
    for name, value in oauth_response.headers:
        if name != "Content-Type":
            response.headers.add(name, value)
    return response
