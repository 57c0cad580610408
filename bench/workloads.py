"""The kinds of work that are measured."""

from enum import StrEnum


class Work(StrEnum):
    """A kind of work; the value is what the command line calls it."""

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

    @property
    def label(self) -> str:
        """What it is, in words."""
        return _LABELS[self]

    @property
    def alerts(self) -> int:
        """How many alerts a request has."""
        return {Work.METRICS: METRICS_ALERTS, Work.LARGE: LARGE_ALERTS}.get(self, 1)

    @property
    def stretch(self) -> int:
        """How many times as long as others its runs are.

        What is under way when a run ends does not count: with slow requests that is no trifle.
        """
        return 3 if self is Work.METRICS else 1


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
    Work.INTAKE: "Generic intake, all new",
    Work.PAGED: "Generic intake, all new, in a project that pages",
    Work.DUPLICATES: "Generic intake, duplicates",
    Work.METRICS: "Metrics webhook of 100 alerts",
    Work.LARGE: "One webhook of 5,000 alerts",
}
