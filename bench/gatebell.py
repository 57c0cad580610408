"""Starts Gatebell as operators do."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

from bench.alert_bodies import build_generic_alert, build_metrics_webhook
from bench.gatebell_seed import seed_gatebell
from bench.oauth_shots import EndpointPaths, SeedData, build_oauth_shots
from bench.scale.history import store_history
from bench.seed_counts import Counts
from bench.shots import VALUE_PLACEHOLDER, OneTimeValues, Shot, ValueMode
from bench.workloads import METRICS_ALERTS, RequestKind
from tests.support.accounts.people import Person, make_project, settings_of
from tests.support.alerts.senders import JSON, Endpoint, connect
from tests.support.service.live import LiveGatebell
from web.database.schema import migrate_to_newest

#: Number of web processes of every server, and number of threads of servers with threads.
WORKERS, THREADS = 2, 4
_ENDPOINT_PATHS = EndpointPaths(
    token="/oauth/token",  # noqa: S106 - an address
    introspection="/oauth/introspect",
    device="/oauth/authorize_device",
)
#: Settings with raised limits, since all load comes from one address.
RAISED_LIMITS = {
    "OAUTH_RATE_LIMIT": "100000000/minute",
    "API_RATE_LIMIT": "100000000/minute",
    "ALERT_BODY_LIMIT_BYTES": str(16 * 2**20),
}


@dataclass(frozen=True, kw_only=True)
class RunningGatebell:
    """A running service with the requests to send."""

    live: LiveGatebell
    owner: Person
    shots: Mapping[RequestKind, Shot]
    metrics: Endpoint
    #: Seconds from the start command to the first response.
    start_seconds: float


@contextmanager
def running_gatebell(
    directory: Path,
    database_url: str,
    counts: Counts,
    *,
    history: int = 0,
    settings: Mapping[str, str] | None = None,
) -> Iterator[RunningGatebell]:
    """Seed a database and run the service; `history` adds alerts and tokens."""
    directory.mkdir(parents=True)
    live = LiveGatebell(
        instance_path=directory,
        database_url=database_url,
        **{"WEB_CONCURRENCY": str(WORKERS), **RAISED_LIMITS, **(settings or {})},
    )
    migrate_to_newest(settings_of(live))
    seed, alice = seed_gatebell(live, counts)
    project = make_project(live, alice)
    generic = connect(live, project)
    metrics = connect(live, project, kind="prometheus", name="Metrics")
    paged = connect(live, create_paging_project(live, alice))
    if history:
        store_history(directory, database_url, history)
    began = perf_counter()
    live.start()
    took = perf_counter() - began
    try:
        shots = {
            **build_oauth_shots(_ENDPOINT_PATHS, seed),
            **build_bearer_shots(seed),
            **build_alert_shots(generic, metrics),
            RequestKind.PAGED: build_alert_shots(paged, metrics)[RequestKind.INTAKE],
        }
        yield RunningGatebell(
            live=live, owner=alice, shots=shots, metrics=metrics, start_seconds=took
        )
    finally:
        live.stop()


def build_bearer_shots(seed: SeedData) -> Mapping[RequestKind, Shot]:
    """Return the requests that present an access token."""
    paths = {RequestKind.TOKEN_INFO: "/oauth/token/info", RequestKind.USER: "/api/v4/user"}
    return {
        work: Shot(
            method="GET",
            path=path,
            headers={"Authorization": f"Bearer {VALUE_PLACEHOLDER}"},
            mode=ValueMode.ROTATE,
            values=OneTimeValues(seed.access_tokens),
        )
        for work, path in paths.items()
    }


def create_paging_project(live: LiveGatebell, person: Person) -> str:
    """Create a project whose alerts page a user in steps."""
    project = make_project(live, person)
    steps = [f"{delay} user:{person.username}" for delay in ("0s", "5m")]
    words = [word for step in steps for word in ("--step", step)]
    live.cli("escalations", "create", project, "--name", "all", *words, "--default")
    return project


def build_alert_shots(generic: Endpoint, metrics: Endpoint) -> Mapping[RequestKind, Shot]:
    """Return the requests that send alerts."""
    hundred = build_metrics_webhook(METRICS_ALERTS, VALUE_PLACEHOLDER)
    return {
        RequestKind.INTAKE: _build_post(
            generic, build_generic_alert(f"Disk full {VALUE_PLACEHOLDER}"), ValueMode.COUNT
        ),
        RequestKind.DUPLICATES: _build_post(
            generic, build_generic_alert("Disk full"), ValueMode.SAME
        ),
        RequestKind.METRICS: _build_post(metrics, hundred, ValueMode.COUNT),
    }


def _build_post(endpoint: Endpoint, body: str, mode: ValueMode) -> Shot:
    headers = {"Content-Type": JSON, **endpoint.bearer}
    return Shot(method="POST", path=endpoint.path, headers=headers, body=body, mode=mode)
