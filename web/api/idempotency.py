"""Support for Idempotency-Key, with which a repeated POST runs only once."""

from collections.abc import Callable
from contextlib import suppress
from http import HTTPStatus
from string import printable, whitespace

from flask import Response, request
from sqlalchemy.exc import SQLAlchemyError

from domain.access.idempotency import KeyedRequest, StoredResponse, claim, keep_response, release
from domain.core.database.locks import release_locks
from domain.core.errors import InvalidParametersError, InvalidValue
from domain.oauth.presented_tokens.bearer import Bearer
from web.access.bearer_token import QUERY_TOKENS
from web.extensions import db
from web.http.json_responses import written_json_response
from web.services import now, services

HEADER = "Idempotency-Key"
_LONGEST = 255
_CHARACTERS = frozenset(printable) - frozenset(whitespace)


def once(bearer: Bearer | None, act: Callable[[], Response]) -> Response:
    """Return the response of a request that runs only once per key.

    Requests without a key, without a token, or with other methods always run.
    """
    key = request.headers.get(HEADER)
    if key is None or bearer is None or request.method != "POST":
        return act()
    wanted = _keyed_request(key, bearer)
    stored = claim(wanted, session=db.session(), keyring=services().keyring, now=now())
    # Other requests see the claim immediately, and no lock is held during the request.
    release_locks(db.session())
    if stored is not None:
        return _repeated(stored)
    return _carried_out(wanted, act)


def _keyed_request(key: str, bearer: Bearer) -> KeyedRequest:
    if not 1 <= len(key) <= _LONGEST or not _CHARACTERS.issuperset(key):
        reason = f"must have 1 to {_LONGEST} visible ASCII characters"
        raise InvalidParametersError([InvalidValue(field=HEADER, reason=reason)])
    return KeyedRequest(
        user_id=bearer.user_id,
        caller=f"{bearer.user_id} {bearer.application_uid} {bearer.personal_token_id}",
        key=key,
        content=_content(),
    )


def _content() -> str:
    """Return the content of the request without its token, which may have been renewed since."""
    query = [pair for pair in request.args.items(multi=True) if pair[0] not in QUERY_TOKENS]
    form = list(request.form.items(multi=True))
    body = request.get_data().decode("latin-1")  # empty if it was a form
    return f"{request.method} {request.path} {query} {form} {body}"


def _repeated(stored: StoredResponse) -> Response:
    response = written_json_response(stored.body.encode(), stored.status)
    response.headers["Idempotency-Replayed"] = "true"
    response.headers["Cache-Control"] = "no-store"
    return response


def _carried_out(wanted: KeyedRequest, act: Callable[[], Response]) -> Response:
    session = db.session()
    try:
        response = act()
        if response.status_code >= HTTPStatus.BAD_REQUEST:
            release(wanted, session=session)
        else:
            kept = StoredResponse(status=response.status_code, body=response.get_data(as_text=True))
            keep_response(wanted, kept, session=session, keyring=services().keyring)
    except Exception:
        session.rollback()
        with suppress(SQLAlchemyError):  # the first error is the relevant one
            release(wanted, session=session)
            release_locks(session)
        raise
    return response
