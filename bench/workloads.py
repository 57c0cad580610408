"""The kinds of requests that are measured."""

from enum import StrEnum


class Work(StrEnum):
    """A kind of request. Its value is the name on the command line."""

    TOKEN_INFO = "token-info"  # noqa: S105 - a name
    USER = "user"
    INTROSPECTION = "introspection"
    REFRESH = "refresh"
    CODE = "code"
    DEVICE = "device"
    POLL = "poll"
    INTAKE = "intake"
    PAGED = "paged"
    DUPLICATES = "duplicates"
    METRICS = "metrics"
    LARGE = "large"
    LOGIN = "login"
    CLIENT_CREDENTIALS = "client-credentials"
    USERINFO = "userinfo"
    BOUND_INTROSPECTION = "dpop-introspection"
    BOUND_CALL = "dpop-call"

    @property
    def label(self) -> str:
        """Description of the kind of request."""
        return _LABELS[self]

    @property
    def alerts(self) -> int:
        """Number of alerts in a request."""
        return {Work.METRICS: METRICS_ALERTS, Work.LARGE: LARGE_ALERTS}.get(self, 1)

    @property
    def stretch(self) -> int:
        """Factor by which runs of this kind are longer than others.

        Requests in progress at the end of a run are not counted, which matters for slow requests.
        """
        return 3 if self in {Work.METRICS, Work.LOGIN} else 1


_ONLY_FIGURES = frozenset(
    {
        Work.LOGIN,
        Work.CLIENT_CREDENTIALS,
        Work.USERINFO,
        Work.BOUND_INTROSPECTION,
        Work.BOUND_CALL,
    }
)
#: Requests of `--figures`, which benchmarks of identity providers publish.
FIGURES = (
    Work.CLIENT_CREDENTIALS,
    Work.CODE,
    Work.REFRESH,
    Work.INTROSPECTION,
    Work.USERINFO,
    Work.BOUND_INTROSPECTION,
    Work.BOUND_CALL,
    Work.LOGIN,
)
#: Requests that are compared with the baselines and the peers.
COMPARED = tuple(work for work in Work if work not in _ONLY_FIGURES)
METRICS_ALERTS = 100
LARGE_ALERTS = 5_000
_LABELS = {
    Work.TOKEN_INFO: "Token info",
    Work.USER: "GET /api/v4/user with a Bearer token",
    Work.INTROSPECTION: "Introspection",
    Work.REFRESH: "Refresh with rotation",
    Work.CODE: "Code exchange",
    Work.DEVICE: "Device authorization",
    Work.POLL: "Device poll",
    Work.INTAKE: "New alerts",
    Work.PAGED: "New alerts in a project that pages",
    Work.DUPLICATES: "Duplicate alerts",
    Work.METRICS: "Webhook of 100 alerts",
    Work.LARGE: "Webhook of 5,000 alerts",
    Work.LOGIN: "Login with a password",
    Work.CLIENT_CREDENTIALS: "Client credentials",
    Work.USERINFO: "Userinfo",
    Work.BOUND_INTROSPECTION: "Introspection of a DPoP-bound token",
    Work.BOUND_CALL: "GET /api/v4/user with a DPoP proof",
}
