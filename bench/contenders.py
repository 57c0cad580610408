"""Starts and prepares all servers that are measured."""

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from os import devnull
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.durable_postgres import start_durable_postgres
from bench.gatebell import WORKERS, running_gatebell
from bench.installs import ROOT
from bench.load import LoadTarget
from bench.options import BenchmarkOptions
from bench.peer_programs import PEERS_IN_ORDER, Peer, run_peer
from bench.pgbench import build_measurements, prepare_project
from bench.processes import RunningProgram, get_inherited_environment, measure_worker_memory
from bench.samples import CannotMeasureError, MeasureFunction
from bench.scale.history import MIN_ROWS
from bench.scale.large_webhook import send_large_webhook
from bench.seed_counts import Counts, build_counts
from bench.shots import Shot
from bench.workloads import COMPARED_KINDS, RequestKind
from tests.support.database.postgres import Postgres

ON_POSTGRES = "Gatebell, Postgres"
MUCH_STORED = "Gatebell, large database"
ON_SQLITE = "Gatebell, SQLite"
#: Name of the baseline of all figures: an empty view with gunicorn's own gevent worker.
EMPTY_VIEW = "empty Flask view"
#: Name of the same view with Gatebell's worker (ADR 27).
EMPTY_VIEW_OWN_WORKER = "empty Flask view, Gatebell's worker"
PGBENCH = "pgbench"
_OWN_WORKER_CLASS = "web.server.gevent_worker.DeadlineGeventWorker"
#: Kinds of requests that the empty view is a baseline for.
_EMPTY_VIEW_KINDS = frozenset({RequestKind.TOKEN_INFO, RequestKind.USER})


@dataclass(frozen=True, kw_only=True)
class Contender:
    """A server or tool that is measured."""

    name: str
    measures: Mapping[RequestKind, MeasureFunction]
    #: Functions that check a single response before the measurement.
    probes: Mapping[RequestKind, Callable[[int], None]] = field(default_factory=dict)
    #: Memory of the largest worker process in MiB, or 0 if there is none.
    memory: Callable[[], float] = lambda: 0.0
    #: Seconds from the start command to the first response, or None if not measured.
    start_seconds: float | None = None


@dataclass(frozen=True, kw_only=True)
class Contenders:
    """The contenders, and the peers that could not be measured."""

    contenders: tuple[Contender, ...]
    #: Reasons why peers could not be measured, by name.
    missing: Mapping[str, str]
    #: URL of an idle database.
    postgres_url: str

    @property
    def ours(self) -> Contender:
        """Contender that the targets apply to."""
        return next(each for each in self.contenders if each.name == ON_POSTGRES)


@contextmanager
def open_contenders(options: BenchmarkOptions) -> Iterator[Contenders]:
    """Start everything that the selected kinds of requests need."""
    with ExitStack() as stack:
        postgres = stack.enter_context(start_durable_postgres()).databases
        directory = Path(stack.enter_context(TemporaryDirectory(prefix="gatebell-bench-")))
        opener = _ContenderStarter(stack, options, postgres, directory)
        yield opener.open()


class _ContenderStarter:
    def __init__(
        self, stack: ExitStack, options: BenchmarkOptions, postgres: Postgres, directory: Path
    ) -> None:
        self._stack = stack
        self._options = options
        self._postgres = postgres
        self._directory = directory
        self._counts: Counts = build_counts(
            runs=options.runs, seconds=options.seconds, has_codes=RequestKind.CODE in options.works
        )

    def open(self) -> Contenders:
        # The view is the same for every kind of request.
        of_view = (
            _EMPTY_VIEW_KINDS
            if self._options.once
            else frozenset(COMPARED_KINDS) - {RequestKind.LARGE}
        )
        found = [
            self._empty_view(EMPTY_VIEW, "gevent", of_view),
            self._empty_view(EMPTY_VIEW_OWN_WORKER, _OWN_WORKER_CLASS, _EMPTY_VIEW_KINDS),
            self._on_postgres(ON_POSTGRES, MIN_ROWS),
        ]
        if self._options.history:
            found.append(self._on_postgres(MUCH_STORED, self._options.history))
        if self._options.has_sqlite:
            found.append(self._gatebell(ON_SQLITE, "", history=0))
        if self._wants({RequestKind.INTAKE, RequestKind.METRICS}):
            found.append(self._pgbench())
        missing = {}
        for peer in PEERS_IN_ORDER if self._options.has_peers else ():
            try:
                found += [self._peer(peer)] if self._wants(peer.works) else []
            except CannotMeasureError as error:
                missing[peer.name] = str(error)
        url = self._postgres.new_database()
        return Contenders(contenders=tuple(found), missing=missing, postgres_url=url)

    def _wants(self, works: set[RequestKind] | frozenset[RequestKind]) -> bool:
        return not works.isdisjoint(self._options.works)

    def _empty_view(self, name: str, worker: str, works: frozenset[RequestKind]) -> Contender:
        _print_line(f"Starting: {name}")
        bind = ("--bind", "127.0.0.1:{port}", "--no-control-socket", "--keep-alive", "65")
        # An explicit file is needed, because gunicorn would load the service's configuration from
        # this directory.
        config = ("--config", devnull, "--worker-class", worker, "--workers", str(WORKERS), *bind)
        program = RunningProgram(
            (sys.executable, "-m", "gunicorn", *config, "bench.floor_view:app"),
            directory=ROOT,
            environment=get_inherited_environment(),
            log=self._directory / f"empty-view-{worker}.log",
        )
        self._stack.enter_context(program)
        shots: dict[RequestKind, Shot] = {work: Shot(method="GET", path="/") for work in works}
        return _build_contender(
            name, shots, program.port, partial(measure_worker_memory, program.pid, "gunicorn")
        )

    def _on_postgres(self, name: str, history: int) -> Contender:
        return self._gatebell(name, self._postgres.new_database(), history=history)

    def _gatebell(self, name: str, url: str, *, history: int) -> Contender:
        _print_line(f"Starting: {name}")
        directory = self._directory / name.replace(", ", "-").lower()
        running = self._stack.enter_context(
            running_gatebell(directory, url, self._counts, history=history)
        )
        live = running.live
        of_shots = _build_contender(
            name, running.shots, live.port, partial(measure_worker_memory, live.pid, "gunicorn")
        )
        large = partial(send_large_webhook, running.metrics)
        return Contender(
            name=name,
            measures={**of_shots.measures, RequestKind.LARGE: large},
            probes=of_shots.probes,
            memory=of_shots.memory,
            start_seconds=running.start_seconds,
        )

    def _pgbench(self) -> Contender:
        _print_line(f"Preparing: {PGBENCH}")
        project = prepare_project(self._directory / "pgbench", self._postgres.new_database())
        return Contender(name=PGBENCH, measures=build_measurements(project))

    def _peer(self, peer: Peer) -> Contender:
        _print_line(f"Installing and starting: {peer.name}")
        running = self._stack.enter_context(
            run_peer(
                peer,
                self._directory / peer.folder,
                self._postgres.new_database(),
                self._counts,
            )
        )
        memory = partial(measure_worker_memory, running.pid, peer.worker)
        return _build_contender(peer.name, running.shots, running.port, memory)


def _build_contender(
    name: str, shots: Mapping[RequestKind, Shot], port: int, memory: Callable[[], float]
) -> Contender:
    targets = {work: LoadTarget(shot, port=port) for work, shot in shots.items()}
    return Contender(
        name=name,
        measures={work: target.measure for work, target in targets.items()},
        probes={work: target.probe for work, target in targets.items()},
        memory=memory,
    )


def _print_line(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
