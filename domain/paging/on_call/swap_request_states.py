"""States of swap requests, and the users who can change them."""

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum

from domain.core.errors import ConflictError, ForbiddenError


class RequestState(StrEnum):
    """The state of a swap request. All states except `requested` are final."""

    REQUESTED = "requested"
    ACCEPTED = "accepted"
    DECLINED = "declined"
    WITHDRAWN = "withdrawn"
    #: Expired: the earlier of the two shifts started before the other user answered.
    EXPIRED = "expired"


class Party(StrEnum):
    """The relation of a user to a swap request."""

    REQUESTER = "requester"
    ASKED = "asked"
    MAINTAINER = "maintainer"
    OTHER = "other"


#: The state after each answer, and the users who can give the answer.
_ANSWERS: Mapping[str, tuple[RequestState, frozenset[Party]]] = {
    "accept": (RequestState.ACCEPTED, frozenset({Party.ASKED})),
    "decline": (RequestState.DECLINED, frozenset({Party.ASKED})),
    "withdraw": (RequestState.WITHDRAWN, frozenset({Party.REQUESTER, Party.MAINTAINER})),
}


def compute_request_state(stored: str, expires_at: datetime, now: datetime) -> RequestState:
    """Return the current state of a request. An unanswered request expires at `expires_at`."""
    state = RequestState(stored)
    if state is RequestState.REQUESTED and now >= expires_at:
        return RequestState.EXPIRED
    return state


def find_next_state(state: RequestState, answer: str, party: Party) -> RequestState:
    """Return the state after an answer.

    Raise ForbiddenError if the user cannot give this answer, or ConflictError if the request has
    already been answered, withdrawn or expired.
    """
    following, parties = _ANSWERS[answer]
    if party not in parties:
        who = "the requester or a Maintainer" if answer == "withdraw" else "the other user"
        raise ForbiddenError(f"Only {who} can {answer} this swap request.")
    if state is not RequestState.REQUESTED:
        word = "has expired" if state is RequestState.EXPIRED else f"was already {state.value}"
        raise ConflictError(f"This swap request {word}.", field="answer")
    return following
