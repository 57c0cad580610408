"""The command line for operators: `flask users create …`. Every answer is one JSON object."""

import json
import sys
from collections.abc import Callable, Mapping
from datetime import timedelta
from functools import wraps
from typing import Any, TypeVar, cast

import click
from flask import Flask
from flask.cli import AppGroup, with_appcontext

from domain.accounts.roles import role_named
from domain.accounts.users import NewUser, create_user, get_user
from domain.alerts import integrations as alert_integrations
from domain.alerts.integrations import IntegrationDetails, IntegrationType
from domain.errors import DomainError
from domain.oauth import applications as oauth_applications
from domain.oauth.applications import ApplicationDetails
from domain.oauth.keys import USUAL_BITS, Handover, list_published_keys, rotate
from domain.oauth.personal_token_lists import TokenFilter, list_tokens
from domain.oauth.personal_tokens import TokenDetails, create_token, revoke_token
from domain.projects import creation
from domain.projects.access import VISIBILITIES, get_project
from domain.projects.members import add_member, get_place
from domain.projects.views import Viewer
from domain.randomness import random_password
from web.extensions import db
from web.live_changes import store_setting
from web.maintenance import prune_database
from web.places import integration_place
from web.routes import reserved_names
from web.services import now, services, settings
from web.settings import SettingsError, settings_from_environment

Command = TypeVar("Command", bound=Callable[..., Any])
#: Operators see everything.
_OPERATOR = Viewer(user_id=None, is_admin=True)


def _one_transaction(command: Command) -> Command:
    """Commit what the command did and print its answer; or print what was wrong and leave 1."""

    @wraps(command)
    @with_appcontext
    def run(**options: Any) -> None:
        try:
            answer: Mapping[str, Any] = command(**options)
            db.session.commit()
        except (DomainError, SettingsError, ValueError) as error:
            db.session.rollback()
            click.echo(json.dumps({"error": str(error)}, ensure_ascii=False), err=True)
            sys.exit(1)
        click.echo(json.dumps(answer, ensure_ascii=False))

    return cast("Command", run)


users = AppGroup("users", help="People who sign in.")


@users.command("create")
@click.argument("name")
@click.option("--email", required=True, help="E-mail address.")
@click.option("--display-name", default="", help="Name that people read; the user name if empty.")
@click.option("--admin", is_flag=True, help="Make an administrator of the instance.")
@click.option("--password-stdin", is_flag=True, help="Read the password from standard input.")
@_one_transaction
def create_user_command(
    *, name: str, email: str, display_name: str, admin: bool, password_stdin: bool
) -> dict[str, Any]:
    """Create a user. Without --password-stdin a password is made up and printed."""
    given = sys.stdin.readline().rstrip("\r\n") if password_stdin else None
    password = given if given is not None else random_password()
    new = NewUser(username=name, email=email, name=display_name, password=password, is_admin=admin)
    user = create_user(
        new,
        session=db.session(),
        now=now(),
        password_minimum=settings().password_min_length,
    )
    answer = {"id": user.id, "username": user.username, "email": user.email}
    return answer if given is not None else {**answer, "password": password}


groups = AppGroup("groups", help="Namespaces of projects.")


@groups.command("create")
@click.argument("path")
@click.option("--owner", help="User who becomes the owner.")
@_one_transaction
def create_group_command(*, path: str, owner: str | None) -> dict[str, Any]:
    """Create the group PATH; `acme/shops` lies in `acme`, which must exist."""
    session = db.session()
    group = creation.create_group(path, reserved=reserved_names(), session=session, now=now())
    if owner:
        user = get_user(owner, session=session)
        creation.make_owner(group, user.id, session=session, now=now())
    return {"id": group.id, "path": group.path}


projects = AppGroup("projects", help="What alerts belong to.")


@projects.command("create")
@click.argument("path", metavar="GROUP/NAME")
@click.option(
    "--visibility",
    type=click.Choice(VISIBILITIES),
    default="private",
    show_default=True,
    help="Who may see the project: members, everybody signed in, everybody.",
)
@click.option("--owner", help="User who becomes the owner.")
@_one_transaction
def create_project_command(*, path: str, visibility: str, owner: str | None) -> dict[str, Any]:
    """Create the project GROUP/NAME; the group must exist."""
    session = db.session()
    project = creation.create_project(
        path, visibility=visibility, reserved=reserved_names(), session=session, now=now()
    )
    if owner:
        user = get_user(owner, session=session)
        creation.make_owner(project, user.id, session=session, now=now())
    return {"id": project.id, "path": project.path, "visibility": project.visibility}


members = AppGroup("members", help="Who has which role where.")


@members.command("add")
@click.argument("place", metavar="PROJECT-OR-GROUP")
@click.argument("user")
@click.argument("role")
@_one_transaction
def add_member_command(*, place: str, user: str, role: str) -> dict[str, Any]:
    """Give USER a ROLE: Guest, Planner, Reporter, Developer, Maintainer or Owner."""
    wanted = role_named(role)
    found = get_place(place, session=db.session())
    member = add_member(found, user, wanted, session=db.session(), now=now())
    return {"place": found.path, "username": member.username, "role": wanted.label}


applications = AppGroup("applications", help="OAuth clients.")


@applications.command("create")
@click.argument("name")
@click.option("--owner", required=True, help="User who owns the application.")
@click.option(
    "--redirect-uri",
    "redirect_uris",
    required=True,
    multiple=True,
    help="Where browsers go back to; may be given several times.",
)
@click.option("--scopes", required=True, help="Space-separated scopes it may ask for.")
@click.option("--public", is_flag=True, help="It cannot keep a secret; PKCE is required.")
@click.option("--require-pkce", is_flag=True, help="Require PKCE although it has a secret.")
@click.option(
    "--refresh-for-devices",
    is_flag=True,
    help="Give refresh tokens to devices and password sign-ins as well.",
)
@click.option("--trusted", is_flag=True, help="Do not ask users for consent.")
@_one_transaction
def create_application_command(*, owner: str, trusted: bool, **options: Any) -> dict[str, Any]:
    """Register an application and print its credentials: the secret is shown this once."""
    user = get_user(owner, session=db.session())
    details = ApplicationDetails(
        name=options["name"],
        redirect_uris=tuple(options["redirect_uris"]),
        scopes=options["scopes"].replace(",", " "),
        confidential=not options["public"],
        require_pkce=options["require_pkce"],
        refresh_for_devices=options["refresh_for_devices"],
    )
    registered = oauth_applications.register(
        details,
        owner_id=user.id,
        session=db.session(),
        keyring=services().keyring,
        now=now(),
        require_https=settings().require_https_redirect_uris,
    )
    registered.application.trusted = trusted
    return {
        "id": registered.application.id,
        "application_id": registered.application.uid,
        "secret": registered.secret,
    }


integrations = AppGroup("integrations", help="Where projects receive alerts.")


@integrations.command("create")
@click.argument("project")
@click.option(
    "--type",
    "kind",
    type=click.Choice([kind.value for kind in IntegrationType]),
    required=True,
    help="http: any JSON. prometheus: Alertmanager's webhook. external: link to an on-call tool.",
)
@click.option("--name", required=True, help="Name that maintainers read.")
@click.option("--api-url", help="Address of the on-call tool, for the type external.")
@click.option("--inactive", is_flag=True, help="Do not turn it on yet.")
@_one_transaction
def create_integration_command(
    *, project: str, kind: str, name: str, api_url: str | None, inactive: bool
) -> dict[str, Any]:
    """Create an integration in PROJECT and print its address and key."""
    place = integration_place(get_project(project, _OPERATOR, session=db.session()))
    created, key = alert_integrations.create_integration(
        place,
        IntegrationType(kind),
        IntegrationDetails(name=name, active=not inactive, api_url=api_url),
        session=db.session(),
        keyring=services().keyring,
        now=now(),
    )
    return {
        "id": created.id,
        "url": alert_integrations.receiving_url(created, place),
        "key": key,
        "endpoint_identifier": created.endpoint_identifier,
    }


tokens = AppGroup("tokens", help="Personal access tokens.")


@tokens.command("create")
@click.argument("user")
@click.option("--name", required=True, help="What the token is for.")
@click.option("--scopes", required=True, help="Space-separated scopes.")
@click.option("--days", type=click.IntRange(1, 3650), help="Lifetime; by default the setting's.")
@_one_transaction
def create_token_command(*, user: str, name: str, scopes: str, days: int | None) -> dict[str, Any]:
    """Create a personal access token for USER; it is shown this once."""
    days = days or settings().personal_access_token_lifetime_days
    token = create_token(
        get_user(user, session=db.session()).id,
        TokenDetails(
            name=name, scopes=scopes.replace(",", " "), expires_at=now() + timedelta(days=days)
        ),
        session=db.session(),
        keyring=services().keyring,
        now=now(),
    )
    return {"token": token.clear, "expires_at": token.token.expires_at.isoformat()}


@tokens.command("list")
@click.argument("user")
@_one_transaction
def list_tokens_command(*, user: str) -> dict[str, Any]:
    """List the personal access tokens of USER, the newest first."""
    wanted = TokenFilter(owner_id=get_user(user, session=db.session()).id)
    found = list_tokens(wanted, session=db.session(), now=now())
    return {"tokens": [token.as_json() for token in found.items]}


@tokens.command("revoke")
@click.argument("token_id", metavar="ID", type=click.IntRange(1))
@_one_transaction
def revoke_token_command(*, token_id: int) -> dict[str, Any]:
    """Make the personal access token ID worthless at once; ask `tokens list` for the number."""
    return revoke_token(token_id, owner_id=None, session=db.session(), now=now()).as_json()


keys = AppGroup("keys", help="Keys that sign ID tokens.")


@keys.command("list")
@_one_transaction
def list_keys_command() -> dict[str, Any]:
    """List the keys that are published, the oldest first."""
    published = list_published_keys(session=db.session(), now=now())
    return {"keys": [key.as_json() for key in published]}


@keys.command("rotate")
@click.option(
    "--handover",
    type=click.Choice([each.value for each in Handover]),
    default=Handover.AFTER_NOTICE.value,
    show_default=True,
    help="When the new key signs, and what becomes of the old ones.",
)
@click.option("--bits", type=int, default=USUAL_BITS, show_default=True, help="Size of the key.")
@_one_transaction
def rotate_keys_command(*, handover: str, bits: int) -> dict[str, Any]:
    """Make a new key; the old ones stay published until all that they signed has expired."""
    session, moment = db.session(), now()
    kid = rotate(
        Handover(handover), bits=bits, session=session, keyring=services().keyring, now=moment
    )
    published = list_published_keys(session=session, now=moment)
    return {"kid": kid, "keys": [key.as_json() for key in published]}


instance_settings = AppGroup("settings", help="Settings that can change while the service runs.")


@instance_settings.command("set")
@click.argument("name")
@click.argument("value")
@_one_transaction
def set_setting_command(*, name: str, value: str) -> dict[str, Any]:
    """Set NAME to VALUE for every process; docs/settings.md lists the names."""
    return store_setting(name, value, session=db.session(), now=now())


@click.command("prune")
@with_appcontext
def prune_command() -> None:
    """Remove expired rows and old deliveries at once, and print how many."""
    click.echo(json.dumps(prune_database(settings_from_environment())))


def register_commands(app: Flask) -> None:
    """Give the `flask` command ours."""
    for group in (
        users,
        groups,
        projects,
        members,
        applications,
        integrations,
        tokens,
        keys,
        instance_settings,
    ):
        app.cli.add_command(group)
    app.cli.add_command(prune_command)
