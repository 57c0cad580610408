"""GET /api/v4/version and /api/v4/metadata: the running release."""

from flask import Blueprint

from web.api.operations import operation
from web.api.schemas.instance.instance import Metadata, Version
from web.services import settings

instance = Blueprint("instance", __name__)


@instance.get("/version")
@operation("instance.version", returns=Version)
def version() -> Version:
    """Show the running release."""
    return Version(version=_running())


@instance.get("/metadata")
@operation("instance.metadata", returns=Metadata)
def metadata() -> Metadata:
    """Show the running release in the longer form."""
    return Metadata(version=_running())


def _running() -> str:
    return f"{settings().release}.0"
