"""The kinds of requests that are measured."""

from enum import StrEnum


class RequestKind(StrEnum):
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
        return _KIND_LABELS[self]

    @property
    def alerts(self) -> int:
        """Number of alerts in a request."""
        return {RequestKind.METRICS: METRICS_ALERTS, RequestKind.LARGE: LARGE_ALERTS}.get(self, 1)

    @property
    def stretch(self) -> int:
        """Factor by which runs of this kind are longer than others.

        Requests in progress at the end of a run are not counted, which matters for slow requests.
        """
        return 3 if self in {RequestKind.METRICS, RequestKind.LOGIN} else 1


_FIGURES_ONLY_KINDS = frozenset(
    {
        RequestKind.LOGIN,
        RequestKind.CLIENT_CREDENTIALS,
        RequestKind.USERINFO,
        RequestKind.BOUND_INTROSPECTION,
        RequestKind.BOUND_CALL,
    }
)
#: Requests of `--figures`, which benchmarks of identity providers publish.
FIGURE_KINDS = (
    RequestKind.CLIENT_CREDENTIALS,
    RequestKind.CODE,
    RequestKind.REFRESH,
    RequestKind.INTROSPECTION,
    RequestKind.USERINFO,
    RequestKind.BOUND_INTROSPECTION,
    RequestKind.BOUND_CALL,
    RequestKind.LOGIN,
)
#: Requests that are compared with the baselines and the peers.
COMPARED_KINDS = tuple(work for work in RequestKind if work not in _FIGURES_ONLY_KINDS)
METRICS_ALERTS = 100
LARGE_ALERTS = 5_000
_KIND_LABELS = {
    RequestKind.TOKEN_INFO: "Token info",
    RequestKind.USER: "GET /api/v4/user with a Bearer token",
    RequestKind.INTROSPECTION: "Introspection",
    RequestKind.REFRESH: "Refresh with rotation",
    RequestKind.CODE: "Code exchange",
    RequestKind.DEVICE: "Device authorization",
    RequestKind.POLL: "Device poll",
    RequestKind.INTAKE: "New alerts",
    RequestKind.PAGED: "New alerts in a project that pages",
    RequestKind.DUPLICATES: "Duplicate alerts",
    RequestKind.METRICS: "Webhook of 100 alerts",
    RequestKind.LARGE: "Webhook of 5,000 alerts",
    RequestKind.LOGIN: "Login with a password",
    RequestKind.CLIENT_CREDENTIALS: "Client credentials",
    RequestKind.USERINFO: "Userinfo",
    RequestKind.BOUND_INTROSPECTION: "Introspection of a DPoP-bound token",
    RequestKind.BOUND_CALL: "GET /api/v4/user with a DPoP proof",
}
