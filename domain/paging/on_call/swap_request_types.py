"""Resources and request bodies for swap requests."""

from typing import Annotated, Literal

from pydantic import Field

from domain.core.types.base import Body, Time, build_choices_schema
from domain.paging.on_call.swap_request_states import SwapRequestState
from domain.paging.on_call.types import SwappedShifts


class OnCallSwapRequest(SwappedShifts):
    """A request by `user` to swap shifts, which `other_user` accepts or declines."""

    state: Annotated[str, build_choices_schema(*(each.value for each in SwapRequestState))]
    expires_at: Time = Field(
        description="Start of the earlier shift, at which an unanswered request expires."
    )
    answered_at: Time | None


class SwapRequestAnswer(Body):
    """The answer to a swap request, or its withdrawal."""

    answer: Literal["accept", "decline", "withdraw"] = Field(
        description="The other user can accept or decline. The requester or a Maintainer can "
        "withdraw the request."
    )
