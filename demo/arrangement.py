"""The initial setup of the demo: group, projects, integrations, on-call schedules, heartbeats."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from demo.cast import BACKUPS, DEMO_USERS, GROUP_PATH, ON_CALL_USERNAMES, PAYMENTS, SHOP, SITE
from demo.machine import SimulatedService

_TIME_ZONE = "Europe/Berlin"


@dataclass(frozen=True, kw_only=True)
class IntegrationSender:
    """The URL and the key of an integration."""

    url: str
    key: str = field(repr=False)


@dataclass(frozen=True, kw_only=True)
class DemoObjects:
    """The created objects that senders and users need to know."""

    #: Personal access tokens by username.
    tokens: Mapping[str, str] = field(repr=False)
    prometheus: IntegrationSender
    checks: IntegrationSender
    payments: IntegrationSender
    #: Heartbeat URLs by name.
    heartbeats: Mapping[str, str] = field(repr=False)
    #: ID of the schedule whose users are paged.
    schedule_id: int


def create_demo_objects(
    machine: SimulatedService, *, password: str, telephones: str
) -> DemoObjects:
    """Create all objects; `telephones` is the host and port that receives pages and webhooks."""
    tokens = _create_users(machine, password)
    _create_projects(machine)
    senders = _create_integrations(machine)
    schedule_id = _create_on_call(machine, tokens, telephones)
    _create_maintenance_window(machine, tokens)
    bot = ("--url", f"http://{telephones}/chat-bot", "--events", "alert.opened,incident.opened")
    machine.run_command("webhooks", "create", SHOP, *bot)
    return DemoObjects(
        tokens=tokens, heartbeats=_create_heartbeats(machine), schedule_id=schedule_id, **senders
    )


def _create_users(machine: SimulatedService, password: str) -> dict[str, str]:
    for person in DEMO_USERS:
        admin = () if person.role else ("--admin",)
        given = ("--email", person.email, "--verified", "--display-name", person.name, *admin)
        options = (*given, "--password-stdin")
        machine.run_command("users", "create", person.username, *options, stdin=f"{password}\n")
    return {
        person.username: machine.run_command(
            *("tokens", "create", person.username, "--name", "Laptop", "--scopes", "api")
        )["token"]
        for person in DEMO_USERS
    }


def _create_projects(machine: SimulatedService) -> None:
    machine.run_command("groups", "create", GROUP_PATH, "--owner", "olivia")
    machine.run_command("groups", "create", BACKUPS.rpartition("/")[0])
    for path, visibility in (
        (SHOP, "private"),
        (PAYMENTS, "private"),
        (SITE, "public"),
        (BACKUPS, "internal"),
    ):
        machine.run_command("projects", "create", path, "--visibility", visibility)
    for person in DEMO_USERS:
        if person.role not in {"", "Owner"}:
            machine.run_command("members", "add", GROUP_PATH, person.username, person.role)


def _create_integrations(machine: SimulatedService) -> dict[str, IntegrationSender]:
    made = {
        "prometheus": (SHOP, "prometheus", "Alertmanager"),
        "checks": (SHOP, "http", "Website checks"),
        "payments": (PAYMENTS, "http", "Payment provider"),
    }
    found = {}
    for name, (project, kind, title) in made.items():
        words = ("integrations", "create", project, "--type", kind, "--name", title)
        answer = machine.run_command(*words)
        found[name] = IntegrationSender(url=answer["url"], key=answer["key"])
    unused = ("--type", "http", "--name", "Nagios, to be connected", "--inactive")
    machine.run_command("integrations", "create", PAYMENTS, *unused)
    return found


def _create_on_call(machine: SimulatedService, tokens: Mapping[str, str], telephones: str) -> int:
    for name in (*ON_CALL_USERNAMES, "marta"):
        address = f"ntfy://{telephones}/{name}"
        label = f"{name.capitalize()}'s telephone"
        given = ("--type", "apprise", "--address", address, "--label", label)
        machine.run_command("contacts", "create", name, *given)
    room = (
        "--type",
        "apprise",
        "--address",
        f"ntfy://{telephones}/ops-room",
        "--label",
        "Ops room",
    )
    machine.run_command("channels", "create", SHOP, *room)
    primary = machine.run_command(
        *("schedules", "create", SHOP, "--name", "Primary", "--time-zone", _TIME_ZONE),
        *("--description", "Whoever is woken first.", "--rotation", "weekly alice,bob mon 09:00"),
        *("--rotation", "daily chen 10:00 only mon-fri 10:00-16:00"),
    )
    machine.run_command(
        *("schedules", "create", SHOP, "--name", "Office hours", "--time-zone", _TIME_ZONE),
        *("--rotation", "weekly marta,chen mon 09:00 only mon-fri 09:00-17:00"),
    )
    machine.run_command(
        *("escalations", "create", SHOP, "--name", "Around the clock", "--default"),
        *("--step", "0s schedule:Primary", "--step", "5m user:marta"),
        *("--step", "15m channel:Ops room", "--repeats", "1"),
    )
    machine.run_command(
        *("escalations", "create", SHOP, "--name", "In the morning"),
        *("--step", "0s channel:Ops room", "--step", "1h schedule:Office hours"),
    )
    _create_routes(machine)
    rule = {
        "name": "Production is down",
        "severities": ["critical"],
        "environments": ["production"],
        "close_when_resolved": True,
    }
    machine.call_api(tokens["marta"], "POST", f"{build_project_path(SHOP)}/incident_rules", **rule)
    return int(primary["id"])


def _create_routes(machine: SimulatedService) -> None:
    nobody = ("--environment", "staging", "--nobody")
    later = ("--severity", "low", "--severity", "info", "--policy", "In the morning")
    search = ("--service", "search", "--policy", "In the morning")
    for name, words in (("Staging", nobody), ("Not urgent", later), ("Search", search)):
        machine.run_command("alert-routes", "create", SHOP, "--name", name, *words)


def _create_maintenance_window(machine: SimulatedService, tokens: Mapping[str, str]) -> None:
    machine.run_command(
        *("maintenance-windows", "create", SHOP, "--name", "Database updates", "--for", "1h"),
        *("--starts", f"{machine.now:%Y-%m-%d}T03:00", "--time-zone", _TIME_ZONE),
        *("--rule", "FREQ=WEEKLY;BYDAY=SU", "--service", "database"),
    )
    hours = {"starts_at": "22:00", "ends_at": "07:00", "time_zone": _TIME_ZONE}
    preferences = {"quiet_hours": {**hours, "critical_breaks_quiet_hours": True}}
    machine.call_api(tokens["chen"], "PUT", "/user/contacts/preferences", **preferences)


def _create_heartbeats(machine: SimulatedService) -> dict[str, str]:
    made = {
        "Nightly backup": (
            BACKUPS,
            "--cron",
            "30 2 * * *",
            "--time-zone",
            _TIME_ZONE,
            "--grace",
            "1h",
        ),
        "Invoice run": (PAYMENTS, "--every", "1d", "--grace", "2h", "--severity", "high"),
        "Sitemap": (SITE, "--every", "6h", "--grace", "30m", "--severity", "low"),
        "Restore drill": (BACKUPS, "--cron", "0 9 1 * *", "--time-zone", _TIME_ZONE),
    }
    return {
        name: machine.run_command("heartbeats", "create", project, "--name", name, *words)["url"]
        for name, (project, *words) in made.items()
    }


def build_project_path(project: str) -> str:
    """Return the path of a project in the API."""
    return f"/projects/{project.replace('/', '%2F')}"
