"""The peers: other servers for the same requests, each in a separate environment."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from bench.alerta import ALERTA_ENVIRONMENT, alerta_shots
from bench.gatebell import THREADS, WORKERS
from bench.installs import NODE, PEERS, install_node, install_python, run
from bench.oauth_shots import Paths, Seed, oauth_shots
from bench.processes import Program, inherited
from bench.seed_counts import Counts
from bench.shots import Shot
from bench.workloads import Work

Shots = Mapping[Work, Shot]


@dataclass(frozen=True, kw_only=True)
class Installed:
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
    install: Callable[[str], Installed]
    #: Function that returns the requests, given the output file of the seed program.
    shots: Callable[[Path], Shots]
    #: Text that the commands of its worker processes contain.
    worker: str
    works: frozenset[Work]
    environment: Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class RunningPeer:
    """A peer that is running."""

    port: int
    pid: int
    shots: Shots


def _gunicorn(folder: str) -> Installed:
    config = ("--worker-class", "gthread", "--workers", str(WORKERS), "--threads", str(THREADS))
    serve = ("-m", "gunicorn", *config, "--bind", "127.0.0.1:{port}", "--keep-alive", "65")
    return Installed(
        interpreter=install_python(folder),
        directory=PEERS / folder / "server",
        serve=(*serve, "--no-control-socket", "wsgi:application"),
        seed=("seed.py",),
    )


def _alerta(folder: str) -> Installed:
    installed = _gunicorn(folder)
    # Alerta creates its tables at import, and two workers that do so at the same time may fail.
    return replace(installed, serve=(*installed.serve, "--preload"), seed=())


def _node(folder: str) -> Installed:
    return Installed(
        interpreter=NODE, directory=install_node(folder), serve=("serve.mjs",), seed=("seed.mjs",)
    )


def _of_oauth(paths: Paths) -> Callable[[Path], Shots]:
    return lambda file: oauth_shots(paths, Seed.read(file))


_OAUTH = frozenset({Work.INTROSPECTION, Work.REFRESH, Work.CODE, Work.DEVICE, Work.POLL})
OIDC_PROVIDER = Peer(
    name="oidc-provider",
    folder="oidc_provider",
    install=_node,
    shots=_of_oauth(
        Paths(token="/token", introspection="/token/introspection", device="/device/auth")  # noqa: S106 - a path
    ),
    worker="serve.mjs",
    works=_OAUTH,
    environment={"WORKERS": str(WORKERS), "NODE_ENV": "production"},
)
DJANGO_OAUTH_TOOLKIT = Peer(
    name="django-oauth-toolkit",
    folder="django_oauth_toolkit",
    install=_gunicorn,
    shots=_of_oauth(
        Paths(
            token="/o/token/",  # noqa: S106 - an address
            introspection="/o/introspect/",
            device="/o/device-authorization/",
        )
    ),
    worker="gunicorn",
    works=_OAUTH,
    environment={},
)
AUTHLIB = Peer(
    name="Authlib in Flask",
    folder="authlib_flask",
    install=_gunicorn,
    shots=_of_oauth(
        Paths(token="/oauth/token", introspection="/oauth/introspect", device="/oauth/device")  # noqa: S106 - a path
    ),
    worker="gunicorn",
    works=_OAUTH,
    environment={},
)
ALERTA = Peer(
    name="Alerta",
    folder="alerta",
    install=_alerta,
    shots=lambda _file: alerta_shots(),
    worker="gunicorn",
    works=frozenset({Work.INTAKE, Work.DUPLICATES, Work.METRICS}),
    environment=ALERTA_ENVIRONMENT,
)
PEERS_IN_ORDER = (OIDC_PROVIDER, DJANGO_OAUTH_TOOLKIT, AUTHLIB, ALERTA)


@contextmanager
def running_peer(
    peer: Peer, directory: Path, database_url: str, counts: Counts
) -> Iterator[RunningPeer]:
    """Install a peer, fill its database and run it.

    Raise CannotMeasureError if that fails.
    """
    installed = peer.install(peer.folder)
    environment = {**inherited(), "DATABASE_URL": database_url, **peer.environment}
    directory.mkdir(parents=True)
    seed_file = directory / "seed.json"
    if installed.seed:
        arguments = (*installed.seed, str(seed_file), json.dumps(asdict(counts)))
        run((installed.interpreter, *arguments), installed.directory, environment)
    program = Program(
        (installed.interpreter, *installed.serve),
        directory=installed.directory,
        environment=environment,
        log=directory / "log",
    )
    with program:
        yield RunningPeer(port=program.port, pid=program.pid, shots=peer.shots(seed_file))
