"""Binding of the authorization server to Flask: its requests, responses and URLs.

An application may send an authorization request by POST (OpenID Connect Core section 3.1.2.1) from
its own origin. The browser then omits the session cookie, so the signed-in user is unknown. The
request is redirected to a GET, which includes the cookie and grants nothing without the user.

If a request needs a new sign-in, the return URL contains the time at which the browser first opened
the request. The time is sealed, so that the user cannot change it.
"""

import codecs
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any, NoReturn, cast
from urllib.parse import parse_qs, unquote_to_bytes, urlencode

from authlib.oauth2.rfc6749 import InvalidRequestError
from flask import Response, has_request_context, request, session, url_for
from flask.typing import ResponseReturnValue
from flask_login import current_user, logout_user
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Session
from werkzeug.datastructures import Headers, MultiDict
from werkzeug.utils import redirect

from domain.access.scopes import ADMIN_MODE
from domain.accounts.sign_in import actions as sign_in_actions
from domain.accounts.sign_in.sessions import RequestSource
from domain.audit.events import EventSource
from domain.oauth.applications.rejected_requests import add_skipped_counts, store_rejected_request
from domain.oauth.consent.approvals import Approver
from domain.oauth.consent.pushed_requests import REQUEST_URI_PREFIX
from domain.oauth.context import NewRejectedRequest, OAuthContext
from domain.oauth.device_authorizations import release_device_requests
from domain.oauth.discovery import build_openid_provider_metadata
from domain.oauth.protocol import (
    OAUTH_NO_STORE_HEADERS,
    FirstPresentation,
    OAuthResponse,
    ProtocolRequest,
    format_error_description,
)
from web.access.decorators import get_current_user, has_recent_sign_in
from web.access.return_urls import (
    STORED_REQUEST_PARAMETER,
    find_stored_return_url,
    shorten_return_url,
)
from web.extensions import db
from web.http.audit_event_source import build_event_source
from web.http.error_formats import add_explanation
from web.http.json_responses import build_json_response
from web.http.unit_of_work import get_unit_of_work
from web.sealing.sealed_values import BrokenSealError, seal_value, unseal_text
from web.services import get_current_time, get_oauth_policy, get_services
from web.settings.policies import oauth as policies

_BYTE_ORDER_MARKS = (codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
#: Maximum length of an excerpt in an error, in characters.
_MAX_EXCERPT_LENGTH = 60


def parse_json_parameters(body: bytes) -> dict[str, list[str]]:
    """Return the parameters in a JSON object of strings.

    A null is the same as a missing parameter. Raise InvalidRequestError if the body is not a JSON
    object, or contains a value that is neither a string nor null.
    """
    if body.startswith(_BYTE_ORDER_MARKS):
        raise InvalidRequestError(
            "The body begins with a byte order mark. Send JSON in UTF-8 without a byte order mark."
        )
    try:
        members = json.loads(body.decode(), object_pairs_hook=list, parse_constant=_reject_constant)
    except (ValueError, RecursionError):
        raise InvalidRequestError("The body is not valid JSON in UTF-8.") from None
    is_object = body.lstrip(b" \t\r\n").startswith(b"{")  # parsed objects and arrays are both lists
    if not is_object or not isinstance(members, list):
        raise InvalidRequestError("The body must be a JSON object with string values.")
    found: dict[str, list[str]] = {}
    for name, value in members:
        if name in found:
            raise InvalidRequestError(
                f"The parameter {_format_excerpt(name)} is given more than once."
            )
        found[name] = [] if value is None else [_check_valid_string(name, value)]
    return found


def _check_valid_string(name: str, value: object) -> str:
    if isinstance(value, str) and not any("\ud800" <= each <= "\udfff" for each in value):
        return value
    raise InvalidRequestError(f"The parameter {_format_excerpt(name)} must be a string.")


def _format_excerpt(name: str) -> str:
    return format_error_description([name], max_length=_MAX_EXCERPT_LENGTH)


def _reject_constant(name: str) -> NoReturn:
    raise ValueError(name)


def build_approval() -> Approver:
    """Return the signed-in user's approval of everything that the user can grant."""
    user = get_current_user()
    return Approver(
        user_id=user.id,
        auth_time=user.auth_time,
        sign_in_id=user.sign_in_id,
        methods=" ".join(user.methods),
        may_administer=user.is_admin,
        has_old_proof=not has_recent_sign_in(),
    )


def build_submitted_approval() -> Approver:
    """Return the approval in a submitted form, where administrators may select `admin_mode`."""
    approval = build_approval()
    has_ticked = ADMIN_MODE in request.form
    return replace(approval, may_administer=approval.may_administer and has_ticked)


def requires_recent_sign_in() -> bool:
    """Return whether an administrator selected `admin_mode` but has to sign in again first."""
    approval = build_submitted_approval()
    return approval.may_administer and approval.has_old_proof


def sign_out_browser(application_name: str = "") -> None:
    """Sign out this browser, and release the device requests that its user has opened."""
    user = get_current_user()
    release_device_requests(user.id, context=build_oauth_context())
    sign_in_actions.sign_out(get_unit_of_work(), user.sign_in_id, application_name)
    logout_user()
    session.clear()


#: Headers that the endpoints read, with their WSGI names.
_READ_HEADERS = {"Authorization": "HTTP_AUTHORIZATION", "DPoP": "HTTP_DPOP"}
_FORM_MEDIA_TYPE = "application/x-www-form-urlencoded"
_JSON_MEDIA_TYPE = "application/json"
#: Maximum size of a JSON body in bytes, which no valid request reaches.
_MAX_JSON_BYTES = 65_535
#: Maximum size in bytes of a form that is parsed here. Werkzeug parses larger forms with its own
#: limits.
_MAX_FORM_BYTES = 65_536
#: Maximum number of rejected requests that are stored per minute, for each application and reason
#: in each process. Further rejected requests are only counted.
_MAX_ROWS_PER_MINUTE = 5


def build_oauth_context() -> OAuthContext:
    """Return the context of this request for the authorization server."""
    own, source = get_services(), RequestSource(address=None, user_agent=None)
    if has_request_context():  # commands have no request context
        agent = request.environ.get("HTTP_USER_AGENT", "")
        source = RequestSource(address=request.remote_addr, user_agent=agent)
    return OAuthContext(
        # The registry acts as a session, but opens a session only when it is used.
        session=cast("Session", db.session),
        connection=own.connections,
        has_begun=_has_transaction,
        keyring=own.keyring,
        now=own.clock(),
        policy=own.live_settings.get_derived_value(policies.build_oauth_policy),
        source=source,
        event_source=_get_event_source,
        record_refusal=_record_rejection,
    )


def _get_event_source() -> EventSource:
    return build_event_source() if has_request_context() else EventSource()


def _has_transaction() -> bool:
    return db.session.registry.has() and db.session().in_transaction()


def _record_rejection(new_rejected_request: NewRejectedRequest, context: OAuthContext) -> None:
    """Store or count a rejected request, without affecting the response to the client."""
    if context.has_begun():  # an error here would break later statements in the transaction
        _store_or_count_rejection(new_rejected_request, context)
        return
    with suppress(DBAPIError):
        _store_or_count_rejection(new_rejected_request, context)


def _store_or_count_rejection(
    new_rejected_request: NewRejectedRequest, context: OAuthContext
) -> None:
    sampler = get_services().token_refusals
    kind = (new_rejected_request.application_id, new_rejected_request.reason.name)
    if sampler.should_store(kind, now=context.now, per_minute=_MAX_ROWS_PER_MINUTE):
        row_id = store_rejected_request(new_rejected_request, context=context)
        add_skipped_counts(sampler.set_counter_row(kind, row_id), context=context)
    add_skipped_counts(sampler.pop_due_counts(now=context.now), context=context)


def read_form_request() -> ProtocolRequest:
    """Return the request to an endpoint that accepts parameters only in the body.

    The body is a form or a JSON object.
    """
    environ = request.environ
    headers = {name: environ[key] for name, key in _READ_HEADERS.items() if key in environ}
    parameters: Mapping[str, Sequence[str]] = {}
    is_read = "form" in vars(request)  # if the form was parsed, the body has been read
    is_short = 0 < (request.content_length or 0) <= _MAX_FORM_BYTES
    if request.content_type == _FORM_MEDIA_TYPE and is_short and not is_read:
        # This avoids Werkzeug's overhead for uploads.
        with suppress(UnicodeDecodeError):
            text = request.get_data().decode()
            parameters = parse_qs(text, keep_blank_values=True, errors="werkzeug.url_quote")
    elif request.mimetype == _JSON_MEDIA_TYPE:
        request.max_content_length = min(
            request.max_content_length or _MAX_JSON_BYTES, _MAX_JSON_BYTES
        )
        parameters = parse_json_parameters(request.get_data())
    else:
        parameters = _convert_to_lists(request.form)
    asked = ProtocolRequest("POST", parameters, headers)
    asked.has_query = bool(environ.get("QUERY_STRING"))
    return asked


def check_parameters_utf8(encoded: bytes) -> None:
    """Check that the parameters of a query or form are UTF-8.

    A parameter with another encoding could not be returned to the application unchanged. Raise
    InvalidRequestError for such a parameter.
    """
    if b"%" not in encoded and encoded.isascii():
        return
    for part in encoded.split(b"&"):
        name, _, value = part.partition(b"=")
        try:
            unquote_to_bytes(value).decode()
        except UnicodeDecodeError:
            shown = _format_excerpt(name.decode("ascii", "replace"))
            raise InvalidRequestError(
                f"The parameter {shown} is not UTF-8. Encode its value as UTF-8."
            ) from None


def read_query_request() -> ProtocolRequest:
    """Return the request in the URL, or the stored request whose handle is in the URL.

    Raise InvalidRequestError if the handle has expired or a value is not UTF-8.
    """
    check_parameters_utf8(request.query_string)
    parameters = _read_url_parameters()
    asked = ProtocolRequest("GET", parameters, {})
    sealed = (
        request.args.get(_FIRST_VISIT_PARAMETER)
        or asked.get_parameter(_FIRST_VISIT_PARAMETER)
        or ""
    )
    asked.first_asked = _unseal_first_visit(sealed, parameters)
    return asked


def _read_url_parameters() -> Mapping[str, Sequence[str]]:
    handle = request.args.get(STORED_REQUEST_PARAMETER)
    return _convert_to_lists(request.args) if handle is None else _read_stored_parameters(handle)


def _read_stored_parameters(handle: str) -> Mapping[str, Sequence[str]]:
    address = find_stored_return_url(handle)
    if address is None:
        raise InvalidRequestError(
            "The authorization request has expired. Start again from the application."
        )
    return parse_authorization_url(address)


def parse_authorization_url(address: str) -> dict[str, list[str]]:
    """Return the parameters of an authorization request in a URL of this service."""
    path, _, query = address.partition("?")
    if path != url_for("authorize.consent"):
        return {}
    return parse_qs(query, keep_blank_values=True, errors="werkzeug.url_quote")


def build_stored_request(parameters: Mapping[str, Sequence[str]]) -> ProtocolRequest:
    """Return an authorization request that was previously checked and stored."""
    return ProtocolRequest("GET", parameters, {})


def _convert_to_lists(values: MultiDict[str, str]) -> dict[str, list[str]]:
    return {name: values.getlist(name) for name in values}


class _VerbatimRedirect(Response):
    """Response that redirects to the URI of the application exactly as registered.

    Werkzeug would normalize the URI.
    """

    def get_wsgi_headers(self, environ: dict[str, Any]) -> Headers:
        """Return the headers with an unchanged Location header."""
        headers = super().get_wsgi_headers(environ)
        headers["Location"] = self.headers["Location"]
        return headers


def build_flask_response(oauth_response: OAuthResponse) -> ResponseReturnValue:
    """Convert a response from an OAuth endpoint to a Flask response."""
    location = next((value for name, value in oauth_response.headers if name == "Location"), None)
    if location is not None:
        response = redirect(location, code=oauth_response.status, Response=_VerbatimRedirect)
        # The location may contain a code.
        response.headers.extend(OAUTH_NO_STORE_HEADERS)
        return response
    body = oauth_response.body
    if not isinstance(body, str) and "error" in body:
        body = add_explanation(body)
    response = build_json_response(body, oauth_response.status)
    for name, value in oauth_response.headers:
        if name != "Content-Type":
            response.headers.add(name, value)
    return response


#: Labels of endpoints by their metadata names, in the order in which clients need them.
_ENDPOINT_LABELS = {
    "issuer": "Issuer",
    "authorization_endpoint": "Authorization",
    "token_endpoint": "Token",
    "userinfo_endpoint": "Userinfo",
    "jwks_uri": "Keys (JWKS)",
    "end_session_endpoint": "Logout",
    "introspection_endpoint": "Introspection",
    "revocation_endpoint": "Revocation",
    "device_authorization_endpoint": "Device authorization",
    "pushed_authorization_request_endpoint": "Pushed authorization requests",
}
_METADATA_LABELS = {
    "openid-configuration": "OpenID Connect metadata",
    "oauth-authorization-server": "OAuth metadata",
}
_FIRST_VISIT_PARAMETER = "first_asked"
_FIRST_VISIT_PURPOSE = "first visit of an authorization request"
#: Maximum time between the first visit and the return from a sign-in with a second factor or a new
#: password.
_FIRST_VISIT_LIFETIME = timedelta(hours=1)


@dataclass(frozen=True, kw_only=True)
class EndpointUrl:
    """A URL that is needed to configure clients."""

    #: ID of the element in the page.
    id: str
    label: str
    url: str


def list_endpoint_urls() -> tuple[EndpointUrl, ...]:
    """Return the issuer, the metadata documents and the enabled endpoints."""
    policy = get_oauth_policy()
    provider = build_openid_provider_metadata(policy)
    issuer, *others = (
        EndpointUrl(id=f"url-{name}", label=label, url=str(provider[name]))
        for name, label in _ENDPOINT_LABELS.items()
        if name in provider
    )
    documents = (
        EndpointUrl(id=f"url-{name}", label=label, url=f"{policy.issuer}/.well-known/{name}")
        for name, label in _METADATA_LABELS.items()
    )
    info = f"{policy.issuer}/oauth/token/info"
    return (issuer, *documents, *others, EndpointUrl(id="url-info", label="Token info", url=info))


def build_authorization_url(parameters: Mapping[str, Sequence[str]]) -> str:
    """Return the URL of an authorization request, with a handle in place of long parameters.

    For a pushed request, the URL only contains the reference, so that the parameters never pass
    through the browser.
    """
    if any(uri.startswith(REQUEST_URI_PREFIX) for uri in parameters.get("request_uri", ())):
        parameters = {n: parameters[n] for n in ("client_id", "request_uri") if n in parameters}
    return shorten_return_url(f"{url_for('authorize.consent')}?{urlencode(parameters, doseq=True)}")


def build_url_after_sign_in(oauth_request: ProtocolRequest) -> str:
    """Return the URL to which the browser returns after a new sign-in.

    The URL contains this authorization request, the time at which the browser first opened it, and
    the sign-in at that time. The time and the sign-in are sealed together with the request. A user
    who could choose these values, or copy them from an earlier request, would not need to sign in
    again.
    """
    first = oauth_request.first_asked or FirstPresentation(
        at=get_current_time(), sign_in_id=_find_sign_in_id()
    )
    digest = _digest_parameters(_read_url_parameters())
    sealed = seal_value(
        [first.at.isoformat(), first.sign_in_id, digest], purpose=_FIRST_VISIT_PURPOSE
    )
    parameters = {**request.args.to_dict(flat=False), _FIRST_VISIT_PARAMETER: [sealed]}
    return shorten_return_url(f"{url_for('authorize.consent')}?{urlencode(parameters, doseq=True)}")


def _find_sign_in_id() -> int | None:
    return get_current_user().sign_in_id if current_user.is_authenticated else None


def _unseal_first_visit(
    sealed_text: str, parameters: Mapping[str, Sequence[str]]
) -> FirstPresentation | None:
    """Return the time and the sign-in of the first visit to an authorization request.

    Return None if the sealed text is missing, invalid or for another request.
    """
    try:
        moment, sign_in_id, digest = unseal_text(
            sealed_text, purpose=_FIRST_VISIT_PURPOSE, lifetime=_FIRST_VISIT_LIFETIME
        )
    except BrokenSealError:
        return None
    if digest != _digest_parameters(parameters):
        return None
    return FirstPresentation(at=datetime.fromisoformat(moment), sign_in_id=sign_in_id)


def _digest_parameters(parameters: Mapping[str, Sequence[str]]) -> str:
    """Return a digest of an authorization request without the time of its first visit."""
    own = sorted(
        (name, list(each)) for name, each in parameters.items() if name != _FIRST_VISIT_PARAMETER
    )
    return sha256(json.dumps(own).encode()).hexdigest()[:32]
