"""The initial setup of the demo: group, projects, integrations, on-call schedules, heartbeats."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from demo.cast import BACKUPS, GROUP, ON_CALL, PAYMENTS, PEOPLE, SHOP, SITE
from demo.machine import Machine

_ZONE = "Europe/Berlin"


@dataclass(frozen=True, kw_only=True)
class Sender:
    """The URL and the key of an integration."""

    url: str
    key: str = field(repr=False)


@dataclass(frozen=True, kw_only=True)
class Places:
    """The created objects that senders and users need to know."""

    #: Personal access tokens by user name.
    tokens: Mapping[str, str] = field(repr=False)
    prometheus: Sender
    checks: Sender
    payments: Sender
    #: Heartbeat URLs by name.
    heartbeats: Mapping[str, str] = field(repr=False)
    #: Id of the schedule whose users are paged.
    schedule_id: int


def arrange(machine: Machine, *, password: str, telephones: str) -> Places:
    """Create all objects; `telephones` is the host and port that receives pages and webhooks."""
    tokens = _people(machine, password)
    _projects(machine)
    senders = _integrations(machine)
    schedule_id = _on_call(machine, tokens, telephones)
    _quiet(machine, tokens)
    bot = ("--url", f"http://{telephones}/chat-bot", "--events", "alert.opened,incident.opened")
    machine.command("webhooks", "create", SHOP, *bot)
    return Places(
        tokens=tokens, heartbeats=_heartbeats(machine), schedule_id=schedule_id, **senders
    )


def _people(machine: Machine, password: str) -> dict[str, str]:
    for person in PEOPLE:
        admin = () if person.role else ("--admin",)
        given = ("--email", person.email, "--verified", "--display-name", person.name, *admin)
        options = (*given, "--password-stdin")
        machine.command("users", "create", person.username, *options, stdin=f"{password}\n")
    return {
        person.username: machine.command(
            *("tokens", "create", person.username, "--name", "Laptop", "--scopes", "api")
        )["token"]
        for person in PEOPLE
    }


def _projects(machine: Machine) -> None:
    machine.command("groups", "create", GROUP, "--owner", "olivia")
    machine.command("groups", "create", BACKUPS.rpartition("/")[0])
    for path, visibility in (
        (SHOP, "private"),
        (PAYMENTS, "private"),
        (SITE, "public"),
        (BACKUPS, "internal"),
    ):
        machine.command("projects", "create", path, "--visibility", visibility)
    for person in PEOPLE:
        if person.role not in {"", "Owner"}:
            machine.command("members", "add", GROUP, person.username, person.role)


def _integrations(machine: Machine) -> dict[str, Sender]:
    made = {
        "prometheus": (SHOP, "prometheus", "Alertmanager"),
        "checks": (SHOP, "http", "Website checks"),
        "payments": (PAYMENTS, "http", "Payment provider"),
    }
    found = {}
    for name, (project, kind, title) in made.items():
        words = ("integrations", "create", project, "--type", kind, "--name", title)
        answer = machine.command(*words)
        found[name] = Sender(url=answer["url"], key=answer["key"])
    unused = ("--type", "http", "--name", "Nagios, to be connected", "--inactive")
    machine.command("integrations", "create", PAYMENTS, *unused)
    return found


def _on_call(machine: Machine, tokens: Mapping[str, str], telephones: str) -> int:
    for name in (*ON_CALL, "marta"):
        address = f"ntfy://{telephones}/{name}"
        label = f"{name.capitalize()}'s telephone"
        given = ("--type", "apprise", "--address", address, "--label", label)
        machine.command("contacts", "create", name, *given)
    room = (
        "--type",
        "apprise",
        "--address",
        f"ntfy://{telephones}/ops-room",
        "--label",
        "Ops room",
    )
    machine.command("channels", "create", SHOP, *room)
    primary = machine.command(
        *("schedules", "create", SHOP, "--name", "Primary", "--time-zone", _ZONE),
        *("--description", "Whoever is woken first.", "--rotation", "weekly alice,bob mon 09:00"),
        *("--rotation", "daily chen 10:00 only mon-fri 10:00-16:00"),
    )
    machine.command(
        *("schedules", "create", SHOP, "--name", "Office hours", "--time-zone", _ZONE),
        *("--rotation", "weekly marta,chen mon 09:00 only mon-fri 09:00-17:00"),
    )
    machine.command(
        *("escalations", "create", SHOP, "--name", "Around the clock", "--default"),
        *("--step", "0s schedule:Primary", "--step", "5m user:marta"),
        *("--step", "15m channel:Ops room", "--repeats", "1"),
    )
    machine.command(
        *("escalations", "create", SHOP, "--name", "In the morning"),
        *("--step", "0s channel:Ops room", "--step", "1h schedule:Office hours"),
    )
    _routes(machine)
    rule = {
        "name": "Production is down",
        "severities": ["critical"],
        "environments": ["production"],
        "close_when_resolved": True,
    }
    machine.api(tokens["marta"], "POST", f"{at(SHOP)}/incident_rules", **rule)
    return int(primary["id"])


def _routes(machine: Machine) -> None:
    nobody = ("--environment", "staging", "--nobody")
    later = ("--severity", "low", "--severity", "info", "--policy", "In the morning")
    search = ("--service", "search", "--policy", "In the morning")
    for name, words in (("Staging", nobody), ("Not urgent", later), ("Search", search)):
        machine.command("alert-routes", "create", SHOP, "--name", name, *words)


def _quiet(machine: Machine, tokens: Mapping[str, str]) -> None:
    machine.command(
        *("maintenance-windows", "create", SHOP, "--name", "Database updates", "--for", "1h"),
        *("--starts", f"{machine.now:%Y-%m-%d}T03:00", "--time-zone", _ZONE),
        *("--rule", "FREQ=WEEKLY;BYDAY=SU", "--service", "database"),
    )
    hours = {"starts_at": "22:00", "ends_at": "07:00", "time_zone": _ZONE}
    preferences = {"quiet_hours": {**hours, "critical_breaks_quiet_hours": True}}
    machine.api(tokens["chen"], "PUT", "/user/contacts/preferences", **preferences)


def _heartbeats(machine: Machine) -> dict[str, str]:
    made = {
        "Nightly backup": (BACKUPS, "--cron", "30 2 * * *", "--time-zone", _ZONE, "--grace", "1h"),
        "Invoice run": (PAYMENTS, "--every", "1d", "--grace", "2h", "--severity", "high"),
        "Sitemap": (SITE, "--every", "6h", "--grace", "30m", "--severity", "low"),
        "Restore drill": (BACKUPS, "--cron", "0 9 1 * *", "--time-zone", _ZONE),
    }
    return {
        name: machine.command("heartbeats", "create", project, "--name", name, *words)["url"]
        for name, (project, *words) in made.items()
    }


def at(project: str) -> str:
    """Return the path of a project in the API."""
    return f"/projects/{project.replace('/', '%2F')}"
