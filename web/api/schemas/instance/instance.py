"""The release of the service."""

from typing import Literal

from web.api.schemas.base import Resource


class Version(Resource):
    """The running release."""

    version: str
    revision: Literal["gatebell"] = "gatebell"


class Metadata(Version):
    """The running release in the longer form."""

    enterprise: Literal[False] = False
