"""Command that lists what an upgrade would disable, before the database is migrated."""

import sys
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple

import click
from flask.cli import with_appcontext
from sqlalchemy import ColumnClause, Connection, column, inspect, select, table

from domain.core.errors import InvalidError
from domain.core.keyring import Keyring, UndecryptableError
from domain.delivery.outgoing.ip_address_policy import check_outgoing_url_allowed
from domain.delivery.outgoing.urls import parse_outgoing_url
from domain.paging.notifications.contact_types.registry import get_contact_type
from web.commands.output import print_result
from web.database.schema import (
    FIRST_RELEASE,
    SchemaState,
    get_newest_known_revision,
    get_schema_state,
)
from web.database.startup_checks import convert_database_errors
from web.extensions import db
from web.outgoing.apprise_processes import check_apprise_url
from web.services import get_services
from web.settings.environment import (
    Settings,
    SettingsError,
    list_ignored_variables,
    parse_setting_value,
)


class UpgradeEffect(NamedTuple):
    """An object that no longer works, or must be changed, after the upgrade."""

    subject: str
    message: str


Row = Mapping[str, Any]


@click.command("upgrade-check")
@with_appcontext
def upgrade_check() -> None:
    """List what stops working after an upgrade to this release.

    Run the command before the migration, with the code and the environment of the new release. It
    only reads the database, whose schema may belong to an earlier release. The exit status is 1 if
    something is listed.
    """
    settings = get_services().live_settings.environment_settings
    with convert_database_errors(), db.engine.connect() as connection:
        found = [*_find_schema_problem(connection)] or [
            *_list_upgrade_effects(connection, settings)
        ]
    listed = [each._asdict() for each in found]
    print_result({"migration": get_newest_known_revision(), "effects": listed})
    sys.exit(1 if listed else 0)


def _find_schema_problem(connection: Connection) -> Iterator[UpgradeEffect]:
    """Yield the problem if the schema is too old or too new for this release."""
    sentences = {
        SchemaState.TOO_OLD: f"Upgrade the database with release {FIRST_RELEASE} first.",
        SchemaState.TOO_NEW: "A newer release has migrated the database. Use that release.",
    }
    if said := sentences.get(get_schema_state(connection)):
        yield UpgradeEffect("database", said)


def _list_upgrade_effects(connection: Connection, settings: Settings) -> Iterator[UpgradeEffect]:
    keyring = get_services().keyring
    for sentence in list_ignored_variables():
        yield UpgradeEffect("environment", sentence)
    yield from _check_stored_settings(connection)
    yield from _check_contacts(connection, settings, keyring)
    for subject, read_url in _list_outgoing_urls(connection, keyring):
        check = partial(_check_url, read_url, settings.outgoing_private_addresses)
        yield from _run_check(subject, check)


def _list_outgoing_urls(
    connection: Connection, keyring: Keyring
) -> Iterator[tuple[str, Callable[[], str]]]:
    """Yield a name for each outgoing URL, such as `webhook 5`, and a function that reads it."""
    for name, subject in (("webhook_endpoints", "webhook"), ("audit_streams", "audit stream")):
        for row in _read_rows(connection, name, "id", "url", "url_ciphertext"):
            cipher = row.get("url_ciphertext")
            read_url = partial(keyring.decrypt, cipher) if cipher else partial(str, row["url"])
            yield f"{subject} {row['id']}", read_url
    for row in _read_rows(connection, "identity_providers", "slug", "issuer"):
        yield f"identity provider {row['slug']}", partial(str, row["issuer"])
    for row in _read_rows(connection, "applications", "id", "backchannel_logout_uri"):
        if uri := row.get("backchannel_logout_uri"):
            yield f"logout URL of application {row['id']}", partial(str, uri)


def _check_stored_settings(connection: Connection) -> Iterator[UpgradeEffect]:
    for row in _read_rows(connection, "instance_settings", "name", "value"):
        try:
            parse_setting_value(row["name"], row["value"])
        except SettingsError as error:
            said = f"{error} The stored value is ignored."
            yield UpgradeEffect(f"setting {row['name'].upper()}", said)


def _check_contacts(
    connection: Connection, settings: Settings, keyring: Keyring
) -> Iterator[UpgradeEffect]:
    names = ("user_id", "project_id", "group_id", "type", "label", "address_ciphertext")
    owners = {
        "user_id": _read_names(connection, "users", "username"),
        "project_id": _read_names(connection, "projects", "path"),
        "group_id": _read_names(connection, "groups", "path"),
    }
    for row in _read_rows(connection, "contacts", "id", *names):
        cipher = row.get("address_ciphertext")
        if not cipher:
            continue
        held = next((each for each in owners if row.get(each)), "user_id")
        owner = f"{held.removesuffix('_id')} {owners[held].get(row[held], row[held])}"
        check = partial(_check_contact, row["type"], cipher, settings, keyring)
        yield from _run_check(f"contact {row['id']} ({row['label']}) of {owner}", check)


def _check_contact(type_name: str, cipher: str, settings: Settings, keyring: Keyring) -> None:
    read_url = partial(check_apprise_url, settings=settings)
    get_contact_type(type_name).validate_address(keyring.decrypt(cipher), read_url=read_url)


def _run_check(subject: str, check: Callable[[], object]) -> Iterator[UpgradeEffect]:
    try:
        check()
    except UndecryptableError:
        yield UpgradeEffect(
            subject, "The value cannot be decrypted with SECRET_KEY and SECRET_KEY_FALLBACKS."
        )
    except InvalidError as error:
        yield UpgradeEffect(subject, f"It stops working after the upgrade. {error}")


def _check_url(read_url: Callable[[], str], networks: str) -> None:
    check_outgoing_url_allowed(parse_outgoing_url(read_url()), networks)


def _read_names(connection: Connection, name: str, wanted: str) -> Mapping[Any, str]:
    return {row["id"]: row[wanted] for row in _read_rows(connection, name, "id", wanted)}


def _read_rows(connection: Connection, name: str, *wanted: str) -> list[Row]:
    """Return the rows of a table with the given columns, except columns that do not exist.

    If the table does not exist in an earlier release, return no rows.
    """
    found = inspect(connection)
    if not found.has_table(name):
        return []
    present = {each["name"] for each in found.get_columns(name)}
    columns: list[ColumnClause[Any]] = [column(each) for each in wanted if each in present]
    rows = connection.execute(select(*columns).select_from(table(name)))
    return [dict(row) for row in rows.mappings()]
