"""What health checks answer."""

from web.api.schemas.base import Resource


class Liveness(Resource):
    """A process that runs; the rest is for `gatebell doctor`, which proves who asks."""

    status: str
    client: str = ""
    forwarded_for: str = ""


class Readiness(Resource):
    """Whether requests can be served, or what is missing."""

    status: str
    database: str
    clock: str = ""
    git: str = ""
