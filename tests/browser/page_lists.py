"""Pages of each subject with content, for the checks of every page."""

from datetime import timedelta

from sqlalchemy import func, select

from domain.access.roles import Role
from domain.core.grace_period import GracePeriod
from domain.core.keyring import Keyring
from domain.oauth.clients.secrets import renew_secret
from domain.paging.notifications.acknowledgement_links import AcknowledgementLink, sign_link
from models import AccessToken, AlertBatch, Identity, PersonalAccessToken
from tests.browser.looks import NASTY
from tests.support.accounts.administration import find_user_id
from tests.support.accounts.api_caller import api_caller
from tests.support.accounts.people import (
    ClientCredentials,
    Person,
    database_of,
    now,
    settings_of,
    signed_in,
    unique,
)
from tests.support.accounts.resource_tokens import get_namespace, make_bot_token, script_of
from tests.support.accounts.team import give_role, person_for
from tests.support.alerts.heartbeats import heartbeat
from tests.support.notifications.push_service import Device, PushService
from tests.support.oauth.oauth_wire import post_token
from tests.support.service.calendars import build_calendar
from tests.support.service.live import LiveGatebell
from tests.support.service.message_receiver import Receiver
from tests.support.wire.html_forms import form_to, submit


def alert_pages(gatebell: LiveGatebell, owner: Person, project: str, name: str) -> list[str]:
    """Change an alert and save a filter; return the pages that show it."""
    browser = signed_in(gatebell, owner)
    path = f"/{project}/-/alerts?status=all&search=x"
    page = browser.get(gatebell.url + path)
    submit(browser, page, form_to(page, "/alerts/status"), iid="1", status="acknowledged")
    submit(browser, page, form_to(page, "/alerts/filters"), name=name[:100], shared="yes")
    with database_of(gatebell) as session:
        batch = session.scalar(select(func.max(AlertBatch.id)))
    period = f"/{project}/-/alerts?status=all&created_after=2026-01-01"
    return [f"/-/alert_changes/{batch}", path, period]


def contact_pages(gatebell: LiveGatebell, person: Person, path: str) -> list[str]:
    """Return the pages of contacts, with an unconfirmed contact, devices and a channel."""
    email = {"type": "email", "address": "a.very.long.name.of.somebody@pager.example.org"}
    call = api_caller(gatebell, person, "/user/contacts")
    made = call.done("POST", status=201, json=email)["id"]
    phone = ("--type", "email", "--address", "phone@pager.example", "--label", NASTY[:100])
    of = ("--contact", str(gatebell.cli("contacts", "create", person.username, *phone)["id"]))
    rule = gatebell.cli("contact-rules", "create", person.username, *of, "--alerts", "critical")
    at = f"/projects/{path.replace('/', '%2F')}/notification_channels"
    team = {**email, "label": "Team"}
    channel = api_caller(gatebell, person, at).done("POST", status=201, json=team)["id"]
    link = AcknowledgementLink(user_id=1, first_batch_id=1, last_batch_id=1)
    sealed = sign_link(link, [settings_of(gatebell).secret_key], now=now())
    contacts = "/-/user_settings/contacts"
    browser = signed_in(gatebell, person)
    page = browser.get(gatebell.url + contacts)
    form = form_to(page, "/contacts/devices")
    for name, label in (("first", "Firefox on Linux"), ("second", NASTY[:100])):
        device = Device(PushService(Receiver(port=443), gatebell.instance_path), name)
        submit(browser, page, form, subscription=device.subscription, label=label)
    own = [contacts, f"{contacts}/rules/{rule['id']}", "/-/on_call", "/-/on_call/cover"]
    add_absences(gatebell, person)
    own += [f"/-/on_call/{each}/new" for each in ("absences", "absence_calendars")]
    forms = [f"{contacts}?service=ntfy", f"{contacts}/{made}"]
    channels = f"/{path}/-/settings/channels"
    return [*own, *forms, channels, f"{channels}/{channel}", f"/-/acknowledge/{sealed}"]


def add_absences(gatebell: LiveGatebell, person: Person) -> None:
    """Add an absence and a calendar of absences."""
    call = api_caller(gatebell, person, "/user/on_call")
    start, end = ((now() + timedelta(days=each)).isoformat() for each in (1, 9))
    absence = {"starts_at": start, "ends_at": end, "note": NASTY[1:200]}
    call.done("POST", "/absences", status=201, json=absence)
    calendar = {"name": NASTY[1:100], "url": "https://calendar.invalid/"}
    call.done("POST", "/absence_calendars", status=201, json=calendar)


def escalation_pages(service: LiveGatebell, person: Person, path: str) -> list[str]:
    """Create a policy and routes in a project, and return the pages that show them."""
    call = api_caller(service, person, f"/projects/{path.replace('/', '%2F')}")
    other = person_for(service, Role.DEVELOPER)
    give_role(service, path, other, Role.DEVELOPER)
    steps = [f"0s user:{person.username}", f"5m user:{other.username}"]
    policy = {"name": NASTY[1:200], "steps": steps, "repeats": 2}
    made = call.done("POST", "/escalation_policies", status=201, json=policy)
    route = {
        "name": NASTY[1:200],
        "severities": ["critical", "high"],
        "environments": [NASTY[1:200]],
        "labels": 'team=~"db.*"',
        "escalation_policy_id": made["id"],
    }
    first = call.done("POST", "/alert_routes", status=201, json=route)
    call.done(
        "POST",
        "/alert_routes",
        status=201,
        json={"name": "Nobody", "severities": ["low"], "escalation_policy_id": None},
    )
    default = {"name": "Day", "steps": steps, "default": True}
    call.done("POST", "/escalation_policies", status=201, json=default)
    at = f"/{path}/-/on_call"
    return [
        *(f"{at}/policies", f"{at}/policies/new", f"{at}/policies/{made['id']}"),
        *(f"{at}/routes", f"{at}/routes/new", f"{at}/routes/{first['id']}"),
        *(f"{at}/routes/dry_run", f"{at}/routes/dry_run?days=30"),
        *(f"{at}/reports?period=last_4_weeks", f"{at}/reports?period=own"),
        *_pages_of_group(service, person, path.rpartition("/")[0]),
    ]


def _pages_of_group(service: LiveGatebell, person: Person, group: str) -> list[str]:
    """Create the shared objects of a group for alerts, and return the pages that show them."""
    call = api_caller(service, person, f"/groups/{group}")
    name = NASTY[1:100]
    rotations = [f"weekly {person.username} mon 09:00"]
    given = {"name": name, "time_zone": "UTC", "rotations": rotations}
    schedule = call.done("POST", "/on_call/schedules", status=201, json=given)
    calendar = {
        "name": name,
        "content": build_calendar(f"DTSTART;VALUE=DATE:{now():%Y%m%d}").decode(),
    }
    path = f"/on_call/schedules/{schedule['id']}/holiday_calendars"
    call.done("POST", path, status=201, json=calendar)
    policy = {"name": name, "steps": [f"0s user:{person.username}"], "default": True}
    made = call.done("POST", "/escalation_policies", status=201, json=policy)
    route = {"name": name, "severities": ["low"], "escalation_policy_id": made["id"]}
    routed = call.done("POST", "/alert_routes", status=201, json=route)
    own = f"/groups/{group}/-"
    at, of_schedule = f"{own}/on_call", f"{own}/on_call/schedules/{schedule['id']}"
    rotation = schedule["rotations"][0]["id"]
    return [
        *(at, f"{at}/schedules/new", of_schedule, f"{of_schedule}/edit"),
        *(
            f"{of_schedule}/{new}/new"
            for new in ("rotations", "overrides", "swaps", "holiday_calendars")
        ),
        *(f"{of_schedule}/rotations/{rotation}/edit", f"{of_schedule}/handover_notes/new"),
        *(f"{at}/policies", f"{at}/policies/new", f"{at}/policies/{made['id']}"),
        *(f"{at}/routes", f"{at}/routes/new", f"{at}/routes/{routed['id']}"),
        f"{at}/reports?period=last_4_weeks",
        *(f"{at}/routes/dry_run", f"{own}/settings/channels"),
        *(
            f"{own}/{rules}{new}"
            for rules in ("silences", "maintenance_windows")
            for new in ("", "/new")
        ),
    ]


def heartbeat_pages(gatebell: LiveGatebell, path: str, text: str) -> list[str]:
    """Return the pages of heartbeats: one is down, one has a cron schedule, and one is new."""
    line = "".join(filter(str.isprintable, text))
    options = ("--every", "1h", "--grace", "0s", "--description", text, "--environment", line)
    down = heartbeat(gatebell, *options, project=path, name=line[:100])
    down.ping("/start")
    down.ping("/7", method="POST", body=text.encode())
    cron = heartbeat(gatebell, "--cron", "30 3 * * 1-5", project=path, name="report")
    cron.ping()
    heartbeat(gatebell, project=path, name="new one")
    at = f"/{path}/-/heartbeats"
    return [at, f"{at}/new", f"{at}/{down.id}", f"{at}/{down.id}/edit", f"{at}/{cron.id}"]


#: Slug of a provider that cannot be reached.
SLUG = "out-of-reach"


def identity_pages(gatebell: LiveGatebell, person: Person, nasty: str) -> list[str]:
    """Return the pages of a user who is connected with one of two providers.

    The last page belongs to a failed sign-in.
    """
    add_provider(gatebell, nasty, SLUG)
    with database_of(gatebell) as session:
        session.add(
            Identity(
                provider_id=add_provider(gatebell, nasty, unique("idp")),
                subject=person.username,
                user_id=find_user_id(gatebell, person),
                name=nasty[:200],
                created_at=now(),
                last_used_at=now(),
            )
        )
    return [
        "/-/user_settings/security",
        f"/-/user_settings/security/identities/{SLUG}",
        "/users/sign_in?again=yes",
        f"/users/auth/{SLUG}/callback",
    ]


def add_provider(gatebell: LiveGatebell, nasty: str, slug: str) -> int:
    """Add a provider and return its id."""
    title = "".join(each for each in nasty if each.isprintable())[:100].strip()
    client = ("--client-id", "x", "--client-secret", "x", "--issuer", "http://127.0.0.1:1")
    command = ("identity-providers", "create", "--slug", slug, "--title", title)
    made = gatebell.cli(*command, *client, "--preset", "entra", "--administrators-group", title)
    return int(made["id"])


def remove_providers(gatebell: LiveGatebell) -> None:
    """Remove all providers, so that other tests do not see them on the sign-in page."""
    for each in gatebell.cli("identity-providers", "list")["identity_providers"]:
        gatebell.cli("identity-providers", "delete", str(each["id"]))


def incident_pages(gatebell: LiveGatebell, person: Person, project: str, nasty: str) -> list[str]:
    """Return the pages of a project's incidents; the first incident has alerts 1 and 2."""
    call = api_caller(gatebell, person, f"/projects/{project.replace('/', '%2F')}")
    conditions = {"severities": ["low"], "labels": {"team": nasty}}
    rule = call.done(
        "POST", "/incident_rules", status=201, json={"name": nasty[:200], **conditions}
    )
    markdown = f"# {nasty}\n\n| a | b |\n|---|---|\n| {nasty} | 1 |\n\n- `x`\n\n> quote\n\n{nasty}"
    linked = {"alerts": [1, 2], "description": markdown, "assignees": [person.username]}
    call.done("POST", "/incidents", status=201, json=linked)
    call.done("POST", "/incidents", status=201, json={"title": nasty[:200], "severity": "low"})
    comment = {"body": markdown, "internal": True}
    call.done("POST", "/incidents/1/notes", status=201, json=comment)
    call.done("PUT", "/incidents/2", json={"status": "resolved"})
    call.done("PUT", "/incidents/1/document", json={"text": markdown})
    at = f"/{project}/-/incidents"
    return [
        *(at, f"{at}?status=all&severity=low&sort=severity", f"{at}?search=very"),
        *(f"{at}/1", f"{at}/2", f"{at}/new", f"{at}/rules", f"{at}/rules/{rule['id']}"),
        *(f"{at}/1/document", f"{at}/1/document?template=yes"),
    ]


def silence_pages(gatebell: LiveGatebell, person: Person, path: str, comment: str) -> list[str]:
    """Return the pages with a silence of the first alert, an ended silence, and a window."""
    call = api_caller(gatebell, person, f"/projects/{path}")
    body = {"matchers": 'severity="critical"', "duration": "2h", "comment": comment}
    active = call.done("POST", "/silences", json=body, status=201)["id"]
    ended = call.done("POST", "/silences", json=body, status=201)["id"]
    call.done("DELETE", f"/silences/{ended}", status=204)
    window = {
        "name": comment[:255],
        "starts_at": "2030-01-01T02:00",
        "time_zone": "Europe/Berlin",
        "duration": "2h",
        "rule": "FREQ=WEEKLY;BYDAY=SU",
        "environments": ["production", "staging/*"],
    }
    planned = call.done("POST", "/maintenance_windows", json=window, status=201)["id"]
    at, windows = f"/{path}/-/silences", f"/{path}/-/maintenance_windows"
    return [
        *(at, f"{at}?state=expired", f"{at}?state=pending", f"{at}/{active}", f"{at}/{ended}"),
        *(f"{at}/new", f"{at}/new?alert=1", f"{at}/flapping"),
        *(windows, f"{windows}/new", f"{windows}/{planned}/edit"),
    ]


def token_pages(
    gatebell: LiveGatebell, person: Person, client: ClientCredentials, project: str, nasty: str
) -> list[str]:
    """Create tokens with texts that are hard to display, and return their pages."""
    # Groups have the same pages.
    script, namespace = script_of(gatebell, person), get_namespace(gatebell, "projects", project)
    make_bot_token(script, namespace, name=nasty[:100], description=nasty[:255])
    gone = make_bot_token(script, namespace)
    script.send_request("DELETE", f"{namespace.by_id}/{gone.id}")
    page = namespace.page
    _sign_in_with_passwords(gatebell, person, client, nasty)
    _renew(gatebell, client)
    return [page, f"{page}?state=inactive", f"{page}/new"]


def _sign_in_with_passwords(
    gatebell: LiveGatebell, person: Person, client: ClientCredentials, nasty: str
) -> None:
    form = {"grant_type": "password", "username": person.username, "password": person.password}
    own = {"client_id": client.client_id, "client_secret": client.secret, "scope": client.scopes}
    programs = (nasty.encode("ascii", "ignore").decode(), "curl/8", "git/2", "python/3", "Xbox")
    for program in programs:
        for more in (own, {}):
            post_token(gatebell, {**form, **more}, headers={"User-Agent": program})
    with database_of(gatebell) as session:
        for token in session.scalars(select(AccessToken)):
            token.last_used_address = "2001:0db8:85a3:0000:0000:8a2e:0370:7334"
            token.last_used_at = now()
        for personal in session.scalars(select(PersonalAccessToken)):
            personal.last_used_address = "2001:0db8:85a3:0000:0000:8a2e:0370:7334"
            personal.last_used_at = now()


def _renew(gatebell: LiveGatebell, client: ClientCredentials) -> None:
    with database_of(gatebell) as session:
        renew_secret(
            client.id,
            session=session,
            keyring=Keyring(settings_of(gatebell).secret_key),
            now=now(),
            grace_period=GracePeriod.WEEK,
        )


def webhook_pages(gatebell: LiveGatebell, person: Person, path: str) -> list[str]:
    """Return the pages of webhooks; one webhook has a failed delivery."""
    call = api_caller(gatebell, person, f"/projects/{path.replace('/', '%2F')}/webhooks")
    given = {"url": "https://hooks.example/in?key=hidden", "events": "*", "labels": 'team="db"'}
    webhook = call.done("POST", status=201, json=given)["id"]
    delivery = call.done("POST", f"/{webhook}/test")["delivery_id"]
    at = f"/{path}/-/settings/webhooks"
    one = f"{at}/{webhook}"
    return [at, f"{at}/new", one, f"{one}/deliveries", f"{one}/deliveries/{delivery}"]
