"""Prometheus metrics, aggregated over all web processes."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import product

from prometheus_client import REGISTRY, CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

from domain.alerts.storing.lifecycle import Action
from domain.oauth.grants.registry import GRANTS_BY_TYPE

_REQUESTS = Counter(
    "gatebell_http_requests_total",
    "Answered requests.",
    ("method", "route", "status"),
)
_REQUEST_DURATIONS = Histogram(
    "gatebell_http_request_duration_seconds",
    "How long requests took.",
    ("method", "route"),
    buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0),
)
_ALERTS = Counter(
    "gatebell_alerts_total",
    "Items of webhooks by result: opened, grouped, resolved, refused (rejected) and so on.",
    ("outcome",),
)
_TOKENS = Counter(
    "gatebell_token_requests_total",
    "Requests for tokens by grant and outcome: issued, or the error code.",
    ("grant_type", "outcome"),
)
_TRANSFERS = Counter(
    "gatebell_git_transfers_total",
    "Requests of Git by service and outcome: done, failed, timed out, bad body, cut off.",
    ("service", "outcome"),
)
_REGISTRY_EVENTS = Counter(
    "gatebell_registry_events_total",
    "Events of the container registry: stored, ignored, or of an unknown_project.",
    ("outcome",),
)
_DEPRECATED_CALLS = Counter(
    "gatebell_deprecated_calls_total",
    "Stored calls that a scheduled change affects, by certainty: sure or possible.",
    ("change", "certainty"),
)
_DROPPED_CALLS = Counter(
    "gatebell_dropped_calls_total",
    "Calls that are missing in the API usage, because too many kinds came at the same time.",
    # A counter without labels would create its file before the directory is set.
    ("reason",),
)
_POOL_EVENTS = Counter(
    "gatebell_database_pool_events_total",
    "Pools of connections: the last_connection_taken of one, or a request that timed_out waiting.",
    ("event",),
)
_DROPPED_LOG_LINES = Counter(
    "gatebell_dropped_log_lines_total",
    "Lines of the log that are missing, because nobody read it in time.",
    ("reason",),
)

#: HTTP methods with their own label. All others are counted as "other".
_LABELED_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_GRANT_TYPES = frozenset(GRANTS_BY_TYPE)


@dataclass(frozen=True, kw_only=True)
class AuditStreamMetrics:
    """Backlog, failures and dropped events of an audit log destination."""

    id: int
    backlog: int
    #: Age of the oldest waiting event in seconds, or 0 if there is none.
    oldest_seconds: float
    failures: int
    is_failing: bool
    dropped: int
    set_aside: int


class _CounterSwitch:
    """A switch that is off if web/server/shared_counters.py found no space for counters."""

    is_on = True


#: Label values for counters of rare events. Counters start with 0, because Prometheus detects an
#: increase only from an earlier value.
_INITIAL_LABELS: tuple[tuple[Counter, tuple[tuple[str, ...], ...]], ...] = (
    (_REQUESTS, tuple(("GET", "(none)", f"{each}xx") for each in (2, 3, 4, 5))),
    (_ALERTS, tuple((each,) for each in (*Action, "refused"))),
    (_TOKENS, tuple((each, "issued") for each in sorted(_GRANT_TYPES))),
    (
        _TRANSFERS,
        tuple(
            product(
                ("git-upload-pack", "git-receive-pack"),
                ("done", "failed", "timed out", "bad body", "cut off"),
            )
        ),
    ),
    (_REGISTRY_EVENTS, (("stored",), ("ignored",), ("unknown_project",))),
    (_DROPPED_CALLS, (("memory",),)),
    (_POOL_EVENTS, (("last_connection_taken",), ("timed_out",))),
    (_DROPPED_LOG_LINES, (("unread",),)),
)


def initialize_counters() -> None:
    """Initialize the counters of this process to 0."""
    for counter, labels in _INITIAL_LABELS:
        for each in labels:
            counter.labels(*each)


def disable_counters() -> None:
    """Disable the metrics of this process."""
    _CounterSwitch.is_on = False


def count_http_request(*, method: str, route: str, status: int, seconds: float) -> None:
    """Count an HTTP request by method, route and status, and record its duration.

    `route` is the URL rule of the request.
    """
    if not _CounterSwitch.is_on:
        return
    requests, durations = _get_request_counters(
        method if method in _LABELED_METHODS else "other", route, status // 100
    )
    requests.inc()
    durations.observe(seconds)


@cache
def _get_request_counters(method: str, route: str, status_class: int) -> tuple[Counter, Histogram]:
    """Return the counters for these labels, cached because the lookup is slow."""
    requests = _REQUESTS.labels(method, route, f"{status_class}xx")
    return requests, _REQUEST_DURATIONS.labels(method, route)


def count_alerts(outcome: str, count: int) -> None:
    """Count received alerts by outcome."""
    if _CounterSwitch.is_on:
        _ALERTS.labels(outcome).inc(count)


def count_token_request(grant_type: str, outcome: str) -> None:
    """Count a token request by grant type and outcome."""
    if _CounterSwitch.is_on:
        _TOKENS.labels(grant_type if grant_type in _GRANT_TYPES else "other", outcome).inc()


def count_git_transfer(service: str, outcome: str) -> None:
    """Count a completed Git request by service and outcome."""
    if _CounterSwitch.is_on:
        _TRANSFERS.labels(service, outcome).inc()


def count_registry_events(outcomes: Mapping[str, int]) -> None:
    """Count events of the container registry by outcome."""
    for outcome, count in outcomes.items():
        if _CounterSwitch.is_on and count:
            _REGISTRY_EVENTS.labels(outcome).inc(count)


def count_deprecated_calls(change: str, certainty: str, count: int) -> None:
    """Count calls that a change in the release schedule affects."""
    if _CounterSwitch.is_on:
        _DEPRECATED_CALLS.labels(change, certainty).inc(count)


def count_dropped_calls(count: int) -> None:
    """Count calls that are missing from the records of API usage."""
    if _CounterSwitch.is_on and count:
        _DROPPED_CALLS.labels("memory").inc(count)


def count_dropped_log_lines(count: int) -> None:
    """Count lines that are missing from the log."""
    if _CounterSwitch.is_on and count:
        _DROPPED_LOG_LINES.labels("unread").inc(count)


def record_pool_exhaustion() -> None:
    """Record that a pool has handed out its last database connection."""
    if _CounterSwitch.is_on:
        _POOL_EVENTS.labels("last_connection_taken").inc()


def count_pool_timeout() -> None:
    """Count a request that timed out while waiting for a database connection."""
    if _CounterSwitch.is_on:
        _POOL_EVENTS.labels("timed_out").inc()


@dataclass(frozen=True)
class Gauge:
    """A metric value that is computed for each scrape."""

    name: str
    words: str
    value: float
    labels: Mapping[str, str] = field(default_factory=dict)


def render_metrics(
    *,
    audit_streams: Sequence[AuditStreamMetrics] = (),
    gauges: Sequence[Gauge] = (),
    collectors: Sequence[Collector] = (),
) -> bytes:
    """Return all metrics in Prometheus's text format.

    The states of audit log destinations and most gauges are read from the database.
    """
    registry = CollectorRegistry()
    try:
        MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
        counted = generate_latest(registry)
    except ValueError:  # without gunicorn, there is only this process
        counted = generate_latest(REGISTRY)
    found = (
        _AuditStreamCollector(audit_streams),
        _GaugeCollector(gauges),
        *collectors,
    )
    return counted + b"".join(generate_latest(each) for each in found)


@dataclass(frozen=True)
class _GaugeCollector(Collector):
    """A collector of gauges, each with one set of labels."""

    gauges: Sequence[Gauge]

    def collect(self) -> Iterator[Metric]:
        """Return the gauges as Prometheus metrics. Gauges of one name are one metric."""
        families: dict[str, GaugeMetricFamily] = {}
        for each in self.gauges:
            new = GaugeMetricFamily(each.name, each.words, labels=list(each.labels))
            family = families.setdefault(each.name, new)
            family.add_metric(list(each.labels.values()), each.value)
        yield from families.values()


#: Gauges for audit log destinations.
_STREAM_GAUGES: tuple[tuple[str, str, Callable[[AuditStreamMetrics], float]], ...] = (
    (
        "gatebell_audit_stream_backlog_events",
        "Audit events that wait for a destination.",
        lambda each: each.backlog,
    ),
    (
        "gatebell_audit_stream_backlog_age_seconds",
        "How long the oldest audit event has waited for a destination.",
        lambda each: each.oldest_seconds,
    ),
    (
        "gatebell_audit_stream_failures",
        "Failed attempts to deliver audit events since the last success.",
        lambda each: each.failures,
    ),
    (
        "gatebell_audit_stream_failing",
        "Whether a destination has accepted no audit event for a day.",
        lambda each: int(each.is_failing),
    ),
    (
        "gatebell_audit_stream_set_aside_events",
        "Audit events that a destination rejected repeatedly; later events are sent before them.",
        lambda each: each.set_aside,
    ),
)


@dataclass(frozen=True)
class _AuditStreamCollector(Collector):
    """A collector of metrics about audit log destinations, by ID."""

    streams: Sequence[AuditStreamMetrics]

    def collect(self) -> Iterator[Metric]:
        """Return the gauges and the counter of each destination."""
        if not self.streams:
            return
        for name, words, read in _STREAM_GAUGES:
            gauge = GaugeMetricFamily(name, words, labels=["stream"])
            for each in self.streams:
                gauge.add_metric([str(each.id)], read(each))
            yield gauge
        dropped = CounterMetricFamily(
            "gatebell_audit_stream_dropped_events",
            "Audit events that waited too long for a destination and were given up.",
            labels=["stream"],
        )
        for each in self.streams:
            dropped.add_metric([str(each.id)], each.dropped)
        yield dropped
