"""The release of the service."""

from typing import Literal

from pydantic import Field

from domain.types.base import Resource


class Version(Resource):
    """The running release."""

    version: str = Field(description="The running release of the interfaces.")
    revision: Literal["gatebell"] = "gatebell"
    gatebell_version: str = Field(description="The version of the program.")
    gatebell_commit: str | None = Field(description="Null where it is not known.")


class Metadata(Version):
    """The running release in the longer form."""

    enterprise: Literal[False] = False
