"""The peers: other servers for the same requests, each in a separate environment."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from bench.alerta import ALERTA_ENVIRONMENT, build_alerta_shots
from bench.gatebell import THREADS, WORKERS
from bench.installs import NODE, PEERS_FOLDER, install_node, install_python, run_until_end
from bench.oauth_shots import EndpointPaths, SeedData, build_oauth_shots
from bench.processes import RunningProgram, get_inherited_environment
from bench.seed_counts import Counts
from bench.shots import Shot
from bench.workloads import RequestKind

ShotsByKind = Mapping[RequestKind, Shot]


@dataclass(frozen=True, kw_only=True)
class InstalledPeer:
    """The commands of an installed peer."""

    interpreter: Path
    directory: Path
    #: Arguments of the interpreter that start the server.
    serve: Sequence[str]
    #: Arguments of the interpreter that fill the database. Empty if no data is needed.
    seed: Sequence[str]


@dataclass(frozen=True, kw_only=True)
class Peer:
    """A server for the comparison."""

    name: str
    #: Folder in bench/peers.
    folder: str
    install: Callable[[str], InstalledPeer]
    #: Function that returns the requests, given the output file of the seed program.
    shots: Callable[[Path], ShotsByKind]
    #: Text that the commands of its worker processes contain.
    worker: str
    works: frozenset[RequestKind]
    environment: Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class RunningPeer:
    """A peer that is running."""

    port: int
    pid: int
    shots: ShotsByKind


def _install_gunicorn_peer(folder: str) -> InstalledPeer:
    config = ("--worker-class", "gthread", "--workers", str(WORKERS), "--threads", str(THREADS))
    serve = ("-m", "gunicorn", *config, "--bind", "127.0.0.1:{port}", "--keep-alive", "65")
    return InstalledPeer(
        interpreter=install_python(folder),
        directory=PEERS_FOLDER / folder / "server",
        serve=(*serve, "--no-control-socket", "wsgi:application"),
        seed=("seed.py",),
    )


def _install_alerta(folder: str) -> InstalledPeer:
    installed = _install_gunicorn_peer(folder)
    # Alerta creates its tables at import, and two workers that do so at the same time may fail.
    return replace(installed, serve=(*installed.serve, "--preload"), seed=())


def _install_node_peer(folder: str) -> InstalledPeer:
    return InstalledPeer(
        interpreter=NODE, directory=install_node(folder), serve=("serve.mjs",), seed=("seed.mjs",)
    )


def _build_shots_function(paths: EndpointPaths) -> Callable[[Path], ShotsByKind]:
    return lambda file: build_oauth_shots(paths, SeedData.read(file))


_OAUTH_KINDS = frozenset(
    {
        RequestKind.INTROSPECTION,
        RequestKind.REFRESH,
        RequestKind.CODE,
        RequestKind.DEVICE,
        RequestKind.POLL,
    }
)
OIDC_PROVIDER = Peer(
    name="oidc-provider",
    folder="oidc_provider",
    install=_install_node_peer,
    shots=_build_shots_function(
        EndpointPaths(token="/token", introspection="/token/introspection", device="/device/auth")  # noqa: S106 - a path
    ),
    worker="serve.mjs",
    works=_OAUTH_KINDS,
    environment={"WORKERS": str(WORKERS), "NODE_ENV": "production"},
)
DJANGO_OAUTH_TOOLKIT = Peer(
    name="django-oauth-toolkit",
    folder="django_oauth_toolkit",
    install=_install_gunicorn_peer,
    shots=_build_shots_function(
        EndpointPaths(
            token="/o/token/",  # noqa: S106 - an address
            introspection="/o/introspect/",
            device="/o/device-authorization/",
        )
    ),
    worker="gunicorn",
    works=_OAUTH_KINDS,
    environment={},
)
AUTHLIB = Peer(
    name="Authlib in Flask",
    folder="authlib_flask",
    install=_install_gunicorn_peer,
    shots=_build_shots_function(
        EndpointPaths(
            token="/oauth/token",  # noqa: S106
            introspection="/oauth/introspect",
            device="/oauth/device",
        )
    ),
    worker="gunicorn",
    works=_OAUTH_KINDS,
    environment={},
)
ALERTA = Peer(
    name="Alerta",
    folder="alerta",
    install=_install_alerta,
    shots=lambda _file: build_alerta_shots(),
    worker="gunicorn",
    works=frozenset({RequestKind.INTAKE, RequestKind.DUPLICATES, RequestKind.METRICS}),
    environment=ALERTA_ENVIRONMENT,
)
PEERS_IN_ORDER = (OIDC_PROVIDER, DJANGO_OAUTH_TOOLKIT, AUTHLIB, ALERTA)


@contextmanager
def run_peer(
    peer: Peer, directory: Path, database_url: str, counts: Counts
) -> Iterator[RunningPeer]:
    """Install a peer, fill its database and run it.

    Raise CannotMeasureError if that fails.
    """
    installed = peer.install(peer.folder)
    environment = {**get_inherited_environment(), "DATABASE_URL": database_url, **peer.environment}
    directory.mkdir(parents=True)
    seed_file = directory / "seed.json"
    if installed.seed:
        arguments = (*installed.seed, str(seed_file), json.dumps(asdict(counts)))
        run_until_end((installed.interpreter, *arguments), installed.directory, environment)
    program = RunningProgram(
        (installed.interpreter, *installed.serve),
        directory=installed.directory,
        environment=environment,
        log=directory / "log",
    )
    with program:
        yield RunningPeer(port=program.port, pid=program.pid, shots=peer.shots(seed_file))
