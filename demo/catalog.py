"""Faults in the demo shop, worded as a monitoring system would word them."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Fault:
    """A kind of Alertmanager alert."""

    name: str
    severity: str
    service: str
    summary: str
    description: str
    expression: str
    environment: str = "production"
    instances: tuple[str, ...] = ()
    #: Minimum and maximum duration in minutes.
    lasts: tuple[int, int] = (4, 40)
    #: Relative probability of the fault.
    weight: int = 3


FAULTS = (
    Fault(
        name="HighErrorRate",
        severity="critical",
        service="checkout",
        summary="Checkout answers with errors",
        description="More than 5% of the requests to /checkout ended with status 5xx.",
        expression='rate(http_requests_total{service="checkout",code=~"5.."}[5m]) > 0.05',
        instances=("web-1", "web-2", "web-3"),
        weight=1,
    ),
    Fault(
        name="SlowResponses",
        severity="high",
        service="checkout",
        summary="Checkout is slow",
        description="The 95th percentile has been above 1.5 s for ten minutes.",
        expression="histogram_quantile(0.95, checkout_request_seconds) > 1.5",
        instances=("web-1", "web-2", "web-3"),
        weight=2,
    ),
    Fault(
        name="DiskAlmostFull",
        severity="high",
        service="database",
        summary="Disk almost full",
        description="/var/lib/postgresql is at 92%, and grows by 1% an hour.",
        expression='node_filesystem_avail_bytes{mountpoint="/var/lib/postgresql"} / size < 0.08',
        instances=("db-1", "db-2"),
        lasts=(30, 180),
        weight=2,
    ),
    Fault(
        name="ReplicationLag",
        severity="medium",
        service="database",
        summary="A replica is behind",
        description="db-2 is 48 s behind the primary.",
        expression="pg_replication_lag_seconds > 30",
        instances=("db-2",),
    ),
    Fault(
        name="SearchIndexStale",
        severity="medium",
        service="search",
        summary="The search index is stale",
        description="No document was indexed in the last 15 minutes.",
        expression="time() - search_last_indexed_timestamp_seconds > 900",
        instances=("search-1",),
        lasts=(10, 90),
    ),
    Fault(
        name="QueueGrowing",
        severity="medium",
        service="mailer",
        summary="The mail queue grows",
        description="4,200 messages wait; usually there are fewer than 100.",
        expression='queue_depth{queue="mail"} > 1000',
        instances=("worker-1",),
    ),
    Fault(
        name="MemoryPressure",
        severity="low",
        service="recommendations",
        summary="A container was restarted for lack of memory",
        description="recommendations-7f4b was killed twice within an hour.",
        expression="increase(container_oom_events_total[1h]) > 1",
        instances=("node-3", "node-5"),
    ),
    Fault(
        name="HighErrorRate",
        severity="low",
        service="checkout",
        summary="Checkout answers with errors",
        description="More than 5% of the requests to /checkout ended with status 5xx.",
        expression='rate(http_requests_total{service="checkout",code=~"5.."}[5m]) > 0.05',
        environment="staging",
        instances=("staging-1",),
        weight=4,
    ),
    Fault(
        name="TargetDown",
        severity="info",
        service="monitoring",
        summary="A target is not scraped",
        description="node-exporter on ci-4 has not answered for five minutes.",
        expression="up == 0",
        environment="staging",
        instances=("ci-4",),
        weight=2,
    ),
)
FAULTS_BY_NAME = {(fault.name, fault.environment): fault for fault in FAULTS}

#: Website checks that are sent to an HTTP endpoint: severity, service, title, description.
WEBSITE_CHECKS = (
    ("high", "website", "www.acme.example is slow", "First byte after 3.2 s, from Frankfurt."),
    ("critical", "website", "www.acme.example is down", "Connection refused, from 3 of 5 places."),
    ("medium", "website", "Broken links on /about", "4 links lead to pages that are gone."),
    ("low", "website", "Certificate ends in 14 days", "CN=www.acme.example, by R11."),
)
