"""A checked request to sign out, sealed to travel through the browser.

An application may ask by POST, from its own origin; the browser leaves our cookie behind then, so
that nobody knows who is signed in. The request is carried over to a GET, without the ID token that
it came with. The question is sealed for the sign-in that sees it, as the consent page's is.
"""

from dataclasses import asdict
from typing import Any

from flask import current_app
from itsdangerous import BadData, URLSafeTimedSerializer

from domain.oauth.endpoints.logout import LogoutRequest
from web.consent_tickets import StaleQuestionError

_CARRIED_SECONDS = 300
_QUESTION_SECONDS = 3600


def _serializer(salt: str) -> URLSafeTimedSerializer:
    return URLSafeTimedSerializer(str(current_app.secret_key), salt=salt)


def carry(asked: LogoutRequest) -> str:
    """Seal a request for the next address."""
    return str(_serializer("logout").dumps(asdict(asked)))


def read_carried(ticket: str) -> LogoutRequest:
    """Return the request, or raise StaleQuestionError."""
    return LogoutRequest(**_opened("logout", ticket, _CARRIED_SECONDS))


def write_question(asked: LogoutRequest, *, sign_in_id: int) -> str:
    """Seal a request for the answer of one sign-in."""
    sealed = {"asked": asdict(asked), "sign_in": sign_in_id}
    return str(_serializer("logout question").dumps(sealed))


def read_question(ticket: str, *, sign_in_id: int) -> LogoutRequest:
    """Return the request, or raise StaleQuestionError."""
    sealed = _opened("logout question", ticket, _QUESTION_SECONDS)
    if sealed["sign_in"] != sign_in_id:
        raise StaleQuestionError
    return LogoutRequest(**sealed["asked"])


def _opened(salt: str, ticket: str, most_seconds: int) -> Any:
    try:
        return _serializer(salt).loads(ticket, max_age=most_seconds)
    except BadData as error:
        raise StaleQuestionError from error
