"""Support for the Idempotency-Key header: a repeated POST request runs only once."""

from collections.abc import Callable
from contextlib import suppress
from http import HTTPStatus
from string import printable, whitespace

from flask import Response, request
from sqlalchemy.exc import SQLAlchemyError

from domain.access.idempotency import (
    KeyedRequest,
    StoredResponse,
    claim_request,
    release_request,
    store_response,
)
from domain.core.database.locks import commit_to_release_locks
from domain.core.errors import InvalidParametersError, InvalidValue
from domain.oauth.token_authentication.bearer import Bearer
from web.access.bearer_token import TOKEN_QUERY_PARAMETERS
from web.extensions import db
from web.http.json_responses import build_serialized_response
from web.services import get_current_time, get_services

IDEMPOTENCY_KEY_HEADER = "Idempotency-Key"
_MAX_KEY_LENGTH = 255
_KEY_CHARACTERS = frozenset(printable) - frozenset(whitespace)


def run_idempotently(bearer: Bearer | None, run_view: Callable[[], Response]) -> Response:
    """Run the view, or return the stored response to an earlier request with the same key.

    Responses are stored only for POST requests with a token and a key. For all other requests, the
    view always runs.
    """
    key = request.headers.get(IDEMPOTENCY_KEY_HEADER)
    if key is None or bearer is None or request.method != "POST":
        return run_view()
    wanted = _build_keyed_request(key, bearer)
    stored = claim_request(
        wanted, session=db.session(), keyring=get_services().keyring, now=get_current_time()
    )
    # Other requests can read the claim immediately, and no lock is held during the request.
    commit_to_release_locks(db.session())
    if stored is not None:
        return _build_replayed_response(stored)
    return _run_and_store_response(wanted, run_view)


def _build_keyed_request(key: str, bearer: Bearer) -> KeyedRequest:
    if not 1 <= len(key) <= _MAX_KEY_LENGTH or not _KEY_CHARACTERS.issuperset(key):
        reason = f"must have 1 to {_MAX_KEY_LENGTH} visible ASCII characters"
        raise InvalidParametersError([InvalidValue(field=IDEMPOTENCY_KEY_HEADER, reason=reason)])
    return KeyedRequest(
        user_id=bearer.user_id,
        caller=f"{bearer.user_id} {bearer.application_uid} {bearer.personal_token_id}",
        key=key,
        content=_serialize_request(),
    )


def _serialize_request() -> str:
    """Return the content of the request as text, without its token.

    The token is omitted because it may have been rotated before the request is repeated.
    """
    query = [
        pair for pair in request.args.items(multi=True) if pair[0] not in TOKEN_QUERY_PARAMETERS
    ]
    form = list(request.form.items(multi=True))
    body = request.get_data().decode("latin-1")  # Empty if the body was a form.
    return f"{request.method} {request.path} {query} {form} {body}"


def _build_replayed_response(stored_response: StoredResponse) -> Response:
    response = build_serialized_response(stored_response.body.encode(), stored_response.status)
    response.headers["Idempotency-Replayed"] = "true"
    response.headers["Cache-Control"] = "no-store"
    return response


def _run_and_store_response(
    keyed_request: KeyedRequest, run_view: Callable[[], Response]
) -> Response:
    session = db.session()
    try:
        response = run_view()
        if response.status_code >= HTTPStatus.BAD_REQUEST:
            release_request(keyed_request, session=session)
        else:
            kept = StoredResponse(status=response.status_code, body=response.get_data(as_text=True))
            store_response(keyed_request, kept, session=session, keyring=get_services().keyring)
    except Exception:
        session.rollback()
        with suppress(SQLAlchemyError):  # The first error is more relevant.
            release_request(keyed_request, session=session)
            commit_to_release_locks(session)
        raise
    return response
