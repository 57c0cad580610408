"""The service for a soak, started as `make run` does, with everything that its visitors use."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.gatebell import RAISED_LIMITS
from bench.noisy_neighbors.neighbor_service import (
    RAISED_CALLER_LIMITS,
    get_default_password_settings,
)
from bench.samples import CannotMeasureError
from bench.soak.receivers import PagesMailbox, PhoneReceiver, UnreliableReceiver
from tests.support.accounts.people import (
    ClientCredentials,
    Person,
    make_application,
    make_project,
    make_user,
    settings_of,
)
from tests.support.accounts.personal_tokens import make_token
from tests.support.alerts.heartbeats import Job, heartbeat
from tests.support.alerts.senders import Endpoint, connect
from tests.support.git.client import GitClient
from tests.support.mail.mail_server import running_mail_server
from tests.support.service.live import LiveGatebell
from tests.support.service.message_receiver import running_receiver
from web.database.schema import migrate_to_newest

USER_COUNT = 6
#: Seconds until the second user is paged for an unacknowledged alert.
SECOND_STEP_SECONDS = 60
_SETTINGS = {
    **RAISED_LIMITS,
    **RAISED_CALLER_LIMITS,
    # Older data is pruned. `bench/soak/keepers.py` lets data age within minutes.
    "ALERT_KEEP_DAYS": "1",
    "DELIVERY_KEEP_COUNT": "50",
    "DELIVERY_KEEP_DAYS": "1",
    "WEBHOOK_DELIVERY_KEEP_DAYS": "1",
    "ACCESS_TOKEN_LIFETIME_SECONDS": "300",
    "ALERT_BODY_LIMIT_BYTES": "262144",
    # A busy machine may need more time to finish other transactions.
    "SQLITE_BUSY_TIMEOUT_MS": "20000",
}


@dataclass(frozen=True, kw_only=True)
class SoakService:
    """The service and its data."""

    live: LiveGatebell
    #: Folder for Git clones.
    directory: Path
    owner: Person
    admin: Person
    #: Users with one policy each, which pages them first and then the next user.
    people: tuple[Person, ...]
    client: ClientCredentials
    device: ClientCredentials
    token: str
    script: Endpoint
    monitor: Endpoint
    pager: Endpoint
    job: Job
    git_project: str
    git: GitClient
    postbox: PagesMailbox
    telephone: PhoneReceiver
    hooks: UnreliableReceiver
    audit: UnreliableReceiver

    @property
    def receivers(self) -> dict[str, UnreliableReceiver]:
        """Receivers of events by sender."""
        return {"project webhook": self.hooks, "audit stream": self.audit}


@contextmanager
def run_soak_service(directory: Path, database_url: str) -> Iterator[SoakService]:
    """Start the service with a database that contains all of the data."""
    directory.mkdir(parents=True)
    postbox, telephone = PagesMailbox(), PhoneReceiver()
    # They share one record of pages, so the way in which a user is paged does not matter.
    telephone.pages = postbox.pages
    hooks, audit = UnreliableReceiver(), UnreliableReceiver()
    with ExitStack() as stack:
        mail_port = stack.enter_context(running_mail_server(postbox))
        for each in (telephone, hooks, audit):
            stack.enter_context(running_receiver(each))
        for each in (hooks, audit):
            stack.callback(each.end)
        live = LiveGatebell(
            instance_path=directory,
            database_url=database_url,
            MAIL_URL=f"smtp://127.0.0.1:{mail_port}",
            **_SETTINGS,
            **get_default_password_settings(),
        )
        migrate_to_newest(settings_of(live))
        service = _fill_service(live, postbox, telephone, hooks, audit)
        live.start()
        try:
            _push_first_commit(service)
            yield service
        finally:
            for each in (hooks, audit):
                each.end()
            live.stop()


def _fill_service(
    live: LiveGatebell,
    postbox: PagesMailbox,
    telephone: PhoneReceiver,
    hooks: UnreliableReceiver,
    audit: UnreliableReceiver,
) -> SoakService:
    owner, admin = make_user(live, name="marta"), make_user(live, name="grace", admin=True)
    people = tuple(make_user(live, name=f"person{number}") for number in range(USER_COUNT))
    project, paging = make_project(live, owner), make_project(live, owner)
    for person in people:
        live.cli("members", "add", paging, person.username, "developer")
    for number, person in enumerate(people):
        _create_policy(live, paging, number, person, people[(number + 1) % USER_COUNT])
    telephone.person = people[-1].username
    live.cli(
        *("contacts", "create", telephone.person, "--type", "apprise"),
        *("--address", telephone.contact_url, "--name", "telephone"),
    )
    live.cli("webhooks", "create", project, "--url", hooks.url, "--events", "*")
    live.cli("audit-streams", "create", "--url", audit.url)
    git_project, token = make_project(live, owner), make_token(live, owner).clear
    home = live.instance_path / "home"
    changes = {"scopes": "read_user read_api", "trusted": True}
    return SoakService(
        live=live,
        directory=home,
        owner=owner,
        admin=admin,
        people=people,
        client=make_application(live, owner, name="Server", **changes),
        device=make_application(live, owner, name="Device", confidential=False),
        token=token,
        script=connect(live, project),
        monitor=connect(live, make_project(live, owner), kind="prometheus", name="Metrics"),
        pager=connect(live, paging, kind="prometheus", name="Pages"),
        job=heartbeat(live, project=project),
        git_project=git_project,
        git=GitClient(gatebell=live, home=home, token=token),
        postbox=postbox,
        telephone=telephone,
        hooks=hooks,
        audit=audit,
    )


def _create_policy(
    live: LiveGatebell, path: str, number: int, first: Person, second: Person
) -> None:
    name = f"team-{number}"
    steps = (f"0s user:{first.username}", f"{SECOND_STEP_SECONDS}s user:{second.username}")
    words = [word for step in steps for word in ("--step", step)]
    live.cli("escalations", "create", path, "--name", name, *words)
    live.cli(
        *("alert-routes", "create", path, "--name", name),
        *("--matcher", f'team="{name}"', "--policy", name),
    )


def _push_first_commit(service: SoakService) -> None:
    files = {f"file-{number}": b"words\n" * 200 for number in range(40)}
    work = service.git.new_work(files)
    done = service.git.push(work, service.git_project)
    if done.status != 0:
        raise CannotMeasureError(done.said)
