"""A running service with one of the databases, and everything that its noisy neighbors use."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from http import HTTPStatus
from http.client import HTTPConnection
from itertools import count
from pathlib import Path

from aiosmtpd.smtp import SMTP, Envelope, Session
from sqlalchemy import insert

from bench.alert_bodies import build_metrics_webhook
from bench.gatebell import RAISED_LIMITS, build_alert_shots, build_bearer_shots
from bench.gatebell_seed import seed_gatebell
from bench.samples import CannotMeasureError
from bench.scale.git_clones import PLAIN_GIT_OPTIONS, create_large_files, push_repository
from bench.seed_counts import Counts
from bench.shots import Shot
from bench.workloads import LARGE_ALERTS, RequestKind
from domain.access.roles import Role
from domain.accounts.passwords import hash_password
from domain.accounts.users import ACTIVE
from domain.core.randomness import generate_random_password
from domain.projects.access import get_project
from domain.projects.views import Viewer
from models import Member, User
from tests.support.accounts.people import (
    Person,
    database_of,
    make_project,
    now,
    open_browser,
    settings_of,
)
from tests.support.accounts.personal_tokens import make_token
from tests.support.alerts.senders import Endpoint, connect
from tests.support.git.client import GitClient
from tests.support.mail.mail_server import Mailbox, running_mail_server
from tests.support.service.live import LiveGatebell
from tests.support.sign_in.password_rules import QUICK
from web.database.schema import migrate_to_newest
from web.settings.environment import Settings

_COUNTS = Counts(access_tokens=1_000, refresh_tokens=1, codes=1, device_codes=1)
#: Settings with raised limits, since all clients share one address and a few accounts.
RAISED_CALLER_LIMITS = {
    **RAISED_LIMITS,
    "RELEASE_CHECK_RATE_LIMIT": "100000000/minute",
    "SIGN_IN_ATTEMPTS_PER_ACCOUNT": "10000",
}
#: Maximum number of targets and steps of an escalation policy (docs/escalations.md).
_TARGETS_PER_STEP, _STEPS_PER_POLICY = 20, 20
_SETUP_TIMEOUT_SECONDS = 120


@dataclass(frozen=True, kw_only=True)
class NeighborSizes:
    """The amounts of data for the neighbors."""

    repository_mib: int
    stored_alerts: int
    people: int


FULL_SIZES = NeighborSizes(repository_mib=500, stored_alerts=20_000, people=10_000)
SMALL_SIZES = NeighborSizes(repository_mib=8, stored_alerts=500, people=40)


@dataclass
class CountingMailbox(Mailbox):
    """A mail server that counts messages without storing them."""

    taken: int = 0

    async def handle_DATA(  # noqa: N802 - aiosmtpd's name
        self, server: SMTP, session: Session, envelope: Envelope
    ) -> str:
        """Receive a message."""
        del server, session, envelope
        self.taken += 1
        return "250 OK"


@dataclass(frozen=True, kw_only=True)
class LargeRepository:
    """A project with a large repository."""

    project: str
    commit: str
    token: str


@dataclass(frozen=True, kw_only=True)
class PagedUsers:
    """A project whose alerts page many users, with one alert for each policy."""

    endpoint: Endpoint
    policies: int
    people: int
    postbox: CountingMailbox


@dataclass(frozen=True, kw_only=True)
class NeighborService:
    """The running service and its data."""

    database: str
    live: LiveGatebell
    shots: Mapping[RequestKind, Shot]
    owner: Person
    endpoint: Endpoint
    metrics: Endpoint
    repository: LargeRepository
    crowd: PagedUsers
    #: Process id of the Postgres parent process. None on SQLite.
    postgres: int | None

    @cached_property
    def cookies(self) -> str:
        """Cookies of a browser in which the owner is signed in."""
        cookies = open_browser(self.live, self.owner).cookies.get_dict()
        return "; ".join(f"{name}={value}" for name, value in cookies.items())

    def ask(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes | None = None
    ) -> int:
        """Send a request over a new connection, and return the status."""
        connection = HTTPConnection("127.0.0.1", self.live.port, timeout=_SETUP_TIMEOUT_SECONDS)
        try:
            connection.request(method, path, body, {**headers, "Connection": "close"})
            answer = connection.getresponse()
            answer.read()
            return answer.status
        finally:
            connection.close()


@contextmanager
def run_neighbor_service(
    directory: Path,
    database_url: str,
    sizes: NeighborSizes,
    *,
    postgres: int | None = None,
) -> Iterator[NeighborService]:
    """Start the service as `make run` does, and fill it with data.

    `postgres` is the process id of the Postgres parent process.
    """
    directory.mkdir(parents=True)
    postbox = CountingMailbox()
    with running_mail_server(postbox) as mail_port:
        live = LiveGatebell(
            instance_path=directory,
            database_url=database_url,
            MAIL_URL=f"smtp://127.0.0.1:{mail_port}",
            **RAISED_CALLER_LIMITS,
            **get_default_password_settings(),
        )
        migrate_to_newest(settings_of(live))
        seed, owner = seed_gatebell(live, _COUNTS)
        project = make_project(live, owner)
        endpoint = connect(live, project)
        metrics = connect(live, project, kind="prometheus", name="Metrics")
        crowd = _create_paged_users(live, owner, sizes.people, postbox)
        live.start()
        try:
            _store_alerts(metrics, sizes.stored_alerts)
            yield NeighborService(
                database="Postgres" if database_url else "SQLite",
                live=live,
                shots={**build_bearer_shots(seed), **build_alert_shots(endpoint, metrics)},
                owner=owner,
                endpoint=endpoint,
                metrics=metrics,
                repository=_create_repository(
                    live, owner, directory / "home", sizes.repository_mib
                ),
                crowd=crowd,
                postgres=postgres,
            )
        finally:
            live.stop()


def get_default_password_settings() -> Mapping[str, str]:
    """Return the default password hash settings of a service."""
    return {
        name.upper(): str(Settings.__dataclass_fields__[name].default)
        for name in ("password_hash_memory_kib", "password_hash_passes")
    }


def _create_repository(
    live: LiveGatebell, owner: Person, home: Path, mebibytes: int
) -> LargeRepository:
    project, token = make_project(live, owner), make_token(live, owner).clear
    git = GitClient(gatebell=live, home=home, token=token, options=PLAIN_GIT_OPTIONS)
    work = create_large_files(git, mebibytes)
    push_repository(git, project, work)
    return LargeRepository(project=project, commit=git.head(work), token=token)


def _store_alerts(metrics: Endpoint, alerts: int) -> None:
    for number in count():
        stored = number * LARGE_ALERTS
        if stored >= alerts:
            return
        body = build_metrics_webhook(min(LARGE_ALERTS, alerts - stored), f"stored{number}x")
        answer = metrics.post(body.encode())
        if answer.status_code != HTTPStatus.OK:
            raise CannotMeasureError(f"{answer.status_code}: {answer.text[:300]}")


def _create_paged_users(
    live: LiveGatebell, owner: Person, people: int, postbox: CountingMailbox
) -> PagedUsers:
    """Create users who are paged by email, with as many users per policy as possible."""
    path = make_project(live, owner)
    names = _create_members(live, path, people)
    of_policy = _TARGETS_PER_STEP * _STEPS_PER_POLICY
    policies = range(0, people, of_policy)
    for number, first in enumerate(policies):
        _create_policy(live, path, f"team-{number}", names[first : first + of_policy])
    return PagedUsers(
        endpoint=connect(live, path, kind="prometheus", name="Pages"),
        policies=len(policies),
        people=people,
        postbox=postbox,
    )


def _create_members(live: LiveGatebell, path: str, people: int) -> list[str]:
    names = [f"person-{number}" for number in range(people)]
    nobodys = hash_password(generate_random_password(), QUICK)
    users = [
        {
            "username": name,
            "email": f"{name}@people.example",
            "name": name,
            "password_hash": nobodys,
            "state": ACTIVE,
            "created_at": now(),
        }
        for name in names
    ]
    with database_of(live) as session:
        project = get_project(path, Viewer(user_id=None, is_admin=True), session=session)
        made = session.scalars(insert(User).returning(User.id), users).all()
        role = {"project_id": project.id, "role": int(Role.DEVELOPER), "created_at": now()}
        session.execute(insert(Member), [{"user_id": each, **role} for each in made])
    return names


def _create_policy(live: LiveGatebell, path: str, name: str, people: list[str]) -> None:
    steps = (
        people[first : first + _TARGETS_PER_STEP]
        for first in range(0, len(people), _TARGETS_PER_STEP)
    )
    words = [
        word
        for step in steps
        for word in ("--step", " ".join(("0s", *(f"user:{each}" for each in step))))
    ]
    live.cli("escalations", "create", path, "--name", name, *words)
    matcher = f'team="{name}"'
    live.cli(
        *("alert-routes", "create", path, "--name", name),
        *("--matcher", matcher, "--policy", name),
    )
