"""Results of test messages to destinations."""

from typing import Self

from pydantic import Field

from domain.outgoing.claims import Attempt
from web.api.schemas.base import Resource


class SentTest(Resource):
    """The result of a test message."""

    delivered: bool
    status: int | None = Field(description="Of the response, if there was one.")
    error: str | None
    duration_ms: int | None

    @classmethod
    def of(cls, result: Attempt) -> Self:
        """Present a result."""
        return cls(
            delivered=result.problem is None,
            status=result.status,
            error=result.problem,
            duration_ms=result.milliseconds,
        )
