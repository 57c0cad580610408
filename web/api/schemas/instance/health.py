"""What health checks answer."""

from domain.types.base import Resource


class Liveness(Resource):
    """A running process; the other members are for signed requests of `gatebell doctor`."""

    status: str
    client: str = ""
    forwarded_for: str = ""


class Readiness(Resource):
    """Whether requests can be served, or what is missing."""

    status: str
    database: str
    clock: str = ""
    git: str = ""
