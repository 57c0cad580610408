"""The durable-intake benchmark for Gatebell, which kills its processes and its Postgres."""

import os
import signal
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from itertools import cycle, islice
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.durable_intake.intake import (
    MARK_PLACEHOLDER,
    DurabilityResult,
    FaultFunction,
    Intake,
    StoredList,
    run_benchmark,
)
from bench.durable_postgres import RunningPostgres, start_durable_postgres
from bench.gatebell import running_gatebell
from bench.processes import kill_process_family
from bench.samples import CannotMeasureError
from bench.seed_counts import Counts
from tests.faults.processes import children, wait_until, web_processes
from tests.support.accounts.people import Person, make_project
from tests.support.accounts.personal_tokens import make_token
from tests.support.alerts.senders import connect
from tests.support.service.live import LiveGatebell

_PROJECT_COUNT = 4
_MINIMAL_COUNTS = Counts(access_tokens=1, refresh_tokens=1, codes=1, device_codes=1)


def measure_gatebell(*, rate: float, seconds: float, faults: int) -> DurabilityResult:
    """Start Gatebell with a durable Postgres and run the benchmark."""
    with (
        start_durable_postgres() as postgres,
        TemporaryDirectory(prefix="gatebell-durable-") as name,
    ):
        url = postgres.databases.new_database()
        with running_gatebell(Path(name) / "live", url, _MINIMAL_COUNTS) as running:
            breakers = islice(cycle(_build_faults(running.live, postgres)), faults)
            return run_benchmark(
                _create_intakes(running.live, running.owner),
                rate=rate,
                seconds=seconds,
                breakers=tuple(breakers),
            )


def _create_intakes(live: LiveGatebell, owner: Person) -> Sequence[Intake]:
    token = make_token(live, owner).clear
    return [_create_intake(live, make_project(live, owner), token) for _ in range(_PROJECT_COUNT)]


def _create_intake(live: LiveGatebell, project: str, token: str) -> Intake:
    endpoint = connect(live, project)
    listed = f"/api/v4/projects/{project.replace('/', '%2F')}/alert_management_alerts"
    return Intake(
        url=endpoint.url,
        headers=endpoint.bearer,
        body={
            "title": MARK_PLACEHOLDER,
            "severity": "high",
            "service": "web",
            "hosts": ["web-1.example"],
        },
        accepted=(200,),
        stored=StoredList(
            url=f"{live.url}{listed}?status=all&per_page=100",
            headers={"PRIVATE-TOKEN": token},
            times="events",
        ),
    )


def _build_faults(live: LiveGatebell, postgres: RunningPostgres) -> Sequence[FaultFunction]:
    """Return the faults to cause in turn."""

    def kill_web() -> None:
        _kill_processes(web_processes(live))

    def kill_server() -> None:
        _kill_processes(_find_processes(live, "-m gunicorn"))

    def kill_worker() -> None:
        _kill_processes(_find_processes(live, "web.jobs.worker"))

    def kill_postgres() -> None:
        postgres.kill()
        postgres.start()

    def kill_everything() -> None:
        kill_process_family(live.pid)
        postgres.kill()
        live.wait()
        postgres.start()
        live.start()

    def wait_before_kill(kill: Callable[[], object]) -> Callable[[], None]:
        """Return a function that waits for the service to recover before it kills again."""

        def kill_then() -> None:
            wait_until(lambda: web_processes(live) and _find_processes(live, "web.jobs.worker"))
            kill()

        return kill_then

    named: Sequence[FaultFunction] = (
        ("both web processes", kill_web),
        ("the worker", kill_worker),
        ("Postgres", kill_postgres),
        ("the web server", kill_server),
        ("everything", kill_everything),
    )
    return [(name, wait_before_kill(kill)) for name, kill in named]


def _find_processes(live: LiveGatebell, words: str) -> Sequence[int]:
    started = children(live.pid)
    return [pid for pid, command in started if words in command and "defunct" not in command]


def _kill_processes(pids: Iterable[int]) -> None:
    killed = False
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
            killed = True
    if not killed:
        raise CannotMeasureError("there is no process to kill")
