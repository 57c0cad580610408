"""GET /api/v4/version and /api/v4/metadata: the running release."""

from typing import Any

from flask import Blueprint

from web.api.operations import operation
from web.api.schemas.instance.instance import Metadata, Version
from web.build import running_build
from web.services import settings

instance = Blueprint("instance", __name__)


@instance.get("/version")
@operation("instance.version", returns=Version)
def version() -> Version:
    """Show the running release."""
    return Version(**_running())


@instance.get("/metadata")
@operation("instance.metadata", returns=Metadata)
def metadata() -> Metadata:
    """Show the running release in the longer form."""
    return Metadata(**_running())


def _running() -> dict[str, Any]:
    build = running_build()
    return {
        "version": f"{settings().release}.0",
        "gatebell_version": build.version,
        "gatebell_commit": build.revision or None,
    }
