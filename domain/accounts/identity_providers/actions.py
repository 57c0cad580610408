"""Actions that let administrators manage identity providers."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import func, inspect, select
from sqlalchemy.exc import IntegrityError

from domain.access.actions import action, read_action
from domain.access.actor import UnitOfWork
from domain.accounts.identity_providers.errors import InvalidProviderResponseError, ProviderError
from domain.accounts.identity_providers.github import GitHubClient
from domain.accounts.identity_providers.identities import remove_identity
from domain.accounts.identity_providers.presets import PRESETS
from domain.accounts.identity_providers.provider_client import (
    ProviderClient,
    ProviderHttpAccess,
    ProviderRegistration,
)
from domain.accounts.identity_providers.types import (
    ConnectionTest,
    GroupRoleMapping,
    IdentityProvider,
    IdentityProviderBody,
    IdentityProviderChangeBody,
    IdentityProviderQuery,
)
from domain.audit.events import EventKind
from domain.core.database.locks import commit_to_release_locks
from domain.core.errors import ConflictError, InvalidError, NotFoundError, TakenError
from domain.core.keyring import Keyring, UndecryptableError
from domain.core.types.base import get_column_values
from domain.core.types.pagination import ListPage
from domain.delivery.outgoing.ip_address_policy import check_outgoing_url_allowed
from domain.delivery.outgoing.urls import parse_outgoing_url
from domain.projects.access import resolve_group
from domain.projects.members import OPERATOR_VIEWER
from models import Identity
from models import IdentityProvider as Row

_LOST_SECRET_REASON = (
    "the client secret was encrypted with a removed SECRET_KEY: enter the client secret again"  # noqa: S105 - a sentence
)
#: Fields that take the preset's value if they are omitted or empty.
_PRESET_FIELDS = ("issuer", "scopes", "groups_claim", "vouches_for_email")


@read_action("identity_providers.index")
def list_providers(work: UnitOfWork, query: IdentityProviderQuery) -> ListPage[IdentityProvider]:
    """List the identity providers."""
    rows = work.session.scalars(select(Row).order_by(Row.id)).all()
    shown = rows[query.offset : query.offset + query.page_size]
    return ListPage(items=[_build_resource(work, each) for each in shown], total=len(rows))


@read_action("identity_providers.show")
def show_provider(work: UnitOfWork, provider_id: int) -> IdentityProvider:
    """Show an identity provider."""
    return _build_resource(work, _get_provider(work, provider_id))


@action("identity_providers.create")
def create_provider(work: UnitOfWork, new: IdentityProviderBody) -> IdentityProvider:
    """Create an identity provider.

    People can sign in through the provider immediately.
    """
    row = Row(slug=new.slug, preset=new.preset, created_at=work.now)
    _set_columns(work, row, {name: getattr(new, name) for name in type(new).model_fields})
    try:
        with work.session.begin_nested():
            work.session.add(row)
    except IntegrityError as error:
        message = f'An identity provider with the slug "{new.slug}" already exists.'
        raise TakenError(message, field="slug") from error
    _record_event(work, EventKind.IDENTITY_PROVIDER_CREATED, row, client_id=row.client_id)
    return _build_resource(work, row)


@action("identity_providers.change")
def change_provider(
    work: UnitOfWork, provider_id: int, change: IdentityProviderChangeBody
) -> IdentityProvider:
    """Change an identity provider, except for its slug.

    The slug is part of the URL that is registered with the provider.
    """
    row = _get_provider(work, provider_id)
    before = get_column_values(row, IdentityProvider)
    _set_columns(work, row, change.given_values)
    after = get_column_values(row, IdentityProvider)
    if before["issuer"] != after["issuer"] and _build_resource(work, row).identities:
        # Another issuer may use the same subject for a different person.
        message = (
            "The issuer cannot be changed while accounts are connected to this identity provider. "
            "Create another identity provider."
        )
        raise ConflictError(message, field="issuer")
    changed = [name for name, value in after.items() if before[name] != value]
    changed += ["client_secret"] if change.given_values.get("client_secret") else []
    if changed:
        _record_event(work, EventKind.IDENTITY_PROVIDER_CHANGED, row, changed=", ".join(changed))
    return _build_resource(work, row)


@action("identity_providers.delete")
def delete_provider(work: UnitOfWork, provider_id: int) -> IdentityProvider:
    """Delete an identity provider and end the sessions of users who signed in through it.

    Accounts are kept.
    """
    row = _get_provider(work, provider_id)
    shown = _build_resource(work, row)
    for each in work.session.scalars(select(Identity).where(Identity.provider_id == row.id)).all():
        remove_identity(work, row, each)
    work.session.delete(row)
    _record_event(work, EventKind.IDENTITY_PROVIDER_REMOVED, row, identities=shown.identities)
    return shown


@action("identity_providers.test", command="test")
def test_connection(work: UnitOfWork, provider_id: int) -> ConnectionTest:
    """Test the connection to an identity provider and report problems."""
    try:
        party = build_provider_client(work, _get_provider(work, provider_id))
        commit_to_release_locks(work.session)  # The following request may be slow.
        found = party.fetch_metadata(refresh=True)
        keys = len(party.fetch_keys(refresh=True).keys) if "jwks_uri" in found else None
    except ProviderError as error:
        return ConnectionTest(works=False, problem=error.reason)
    names_itself = found.get("authorization_response_iss_parameter_supported") is True
    of_ours = {"works": True, "problem": None, "keys": keys, "names_itself": names_itself}
    return ConnectionTest(**{**found, **of_ours})


def get_active_provider(work: UnitOfWork, slug: str) -> Row:
    """Return the active provider with this slug.

    Raise NotFoundError if there is no such provider.
    """
    row = work.session.scalar(select(Row).where(Row.slug == slug.replace("\x00", ""), Row.active))
    if row is None:
        raise NotFoundError("You cannot sign in through this identity provider.")
    return row


def build_provider_client(work: UnitOfWork, row: Row) -> ProviderClient:
    """Return the client that communicates with a provider.

    Raise InvalidProviderResponseError if the client secret cannot be decrypted.
    """
    try:
        client_secret = work.policy(Keyring).decrypt(row.client_secret_ciphertext)
    except UndecryptableError as error:
        raise InvalidProviderResponseError(row.title, _LOST_SECRET_REASON) from error
    client = ProviderRegistration(
        title=row.title,
        preset=row.preset,
        issuer=row.issuer,
        client_id=row.client_id,
        client_secret=client_secret,
        scopes=row.scopes,
        redirect_uri=build_provider_redirect_uri(work, row.slug),
        groups_claim=row.groups_claim if row.group_roles or row.administrators_group else None,
    )
    kind = ProviderClient if PRESETS[row.preset].is_openid else GitHubClient
    return kind(client, work.policy(ProviderHttpAccess), now=work.now)


def build_provider_redirect_uri(work: UnitOfWork, slug: str) -> str:
    """Return the redirect URI to register with the provider that has this slug."""
    return f"{work.settings.base_url}/users/auth/{slug}/callback"


def _get_provider(work: UnitOfWork, provider_id: int) -> Row:
    row = work.session.get(Row, provider_id)
    if row is None:
        raise NotFoundError("Identity provider not found.")
    return row


def _build_resource(work: UnitOfWork, row: Row) -> IdentityProvider:
    identities = select(func.count(Identity.id)).where(Identity.provider_id == row.id)
    return IdentityProvider(
        **get_column_values(row, IdentityProvider),
        redirect_uri=build_provider_redirect_uri(work, row.slug),
        identities=work.session.scalar(identities) or 0,
    )


def _set_columns(work: UnitOfWork, row: Row, given_values: Mapping[str, Any]) -> None:
    """Set and check the columns of a provider.

    Raise InvalidError for a value that cannot be used.
    """
    preset = PRESETS[row.preset]
    for name, value in given_values.items():
        if name in _PRESET_FIELDS and value in (None, ""):
            setattr(row, name, getattr(preset, name))
        elif name != "client_secret":
            setattr(row, name, list(value) if isinstance(value, tuple) else value)
        elif value:
            row.client_secret_ciphertext = work.policy(Keyring).encrypt(value)
    _check_provider(work, row)


def _check_provider(work: UnitOfWork, row: Row) -> None:
    url = parse_outgoing_url(row.issuer, field="issuer")
    if inspect(row).attrs.issuer.history.has_changes():
        networks = work.settings.outgoing_private_addresses
        check_outgoing_url_allowed(url, networks, field="issuer")
    if "?" in url.target:
        raise InvalidError("The issuer must not have a query.", field="issuer")
    if PRESETS[row.preset].is_openid and "openid" not in row.scopes.split():
        raise InvalidError("The scopes must include openid.", field="scopes")
    for each in map(GroupRoleMapping.from_text, row.group_roles):
        try:
            resolve_group(each.path, OPERATOR_VIEWER, session=work.session)
        except NotFoundError as error:
            raise InvalidError(f"{each.path}: {error}", field="group_roles") from error


def _record_event(work: UnitOfWork, kind: EventKind, row: Row, **details: object) -> None:
    work.record_audit_event(kind, subject=row.slug, details={"issuer": row.issuer, **details})
