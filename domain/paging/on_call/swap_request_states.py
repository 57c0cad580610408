"""States of swap requests, and the users who can change them."""

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum

from domain.core.errors import ConflictError, ForbiddenError


class SwapRequestState(StrEnum):
    """The state of a swap request. All states except `requested` are final."""

    REQUESTED = "requested"
    ACCEPTED = "accepted"
    DECLINED = "declined"
    WITHDRAWN = "withdrawn"
    #: State of a request that the other user had not answered when the earlier of the two shifts
    #: started.
    EXPIRED = "expired"


class SwapRequestParty(StrEnum):
    """The role that a user has in a swap request."""

    REQUESTER = "requester"
    ASKED = "asked"
    MAINTAINER = "maintainer"
    OTHER = "other"


#: The state after each answer, and the users who can give the answer.
_ANSWERS: Mapping[str, tuple[SwapRequestState, frozenset[SwapRequestParty]]] = {
    "accept": (SwapRequestState.ACCEPTED, frozenset({SwapRequestParty.ASKED})),
    "decline": (SwapRequestState.DECLINED, frozenset({SwapRequestParty.ASKED})),
    "withdraw": (
        SwapRequestState.WITHDRAWN,
        frozenset({SwapRequestParty.REQUESTER, SwapRequestParty.MAINTAINER}),
    ),
}


def compute_request_state(stored: str, expires_at: datetime, now: datetime) -> SwapRequestState:
    """Return the current state of a request. An unanswered request expires at `expires_at`."""
    state = SwapRequestState(stored)
    if state is SwapRequestState.REQUESTED and now >= expires_at:
        return SwapRequestState.EXPIRED
    return state


def find_next_state(
    state: SwapRequestState, answer: str, party: SwapRequestParty
) -> SwapRequestState:
    """Return the state after an answer.

    Raise ForbiddenError if the user cannot give this answer, or ConflictError if the request has
    already been answered, withdrawn or expired.
    """
    following, parties = _ANSWERS[answer]
    if party not in parties:
        who = "the requester or a Maintainer" if answer == "withdraw" else "the other user"
        raise ForbiddenError(f"Only {who} can {answer} this swap request.")
    if state is not SwapRequestState.REQUESTED:
        word = "has expired" if state is SwapRequestState.EXPIRED else f"was already {state.value}"
        raise ConflictError(f"This swap request {word}.", field="answer")
    return following
