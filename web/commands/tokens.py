"""Commands about personal access tokens."""

from datetime import timedelta
from typing import Any

import click
from flask.cli import AppGroup

from domain.accounts.users import get_user
from domain.audit.events import Event, EventKind
from domain.oauth.personal_tokens.lists import TokenFilter, TokenView, get_token, list_tokens
from domain.oauth.personal_tokens.tokens import TokenDetails, create_token, revoke_token
from web.commands.transaction import one_transaction
from web.extensions import db
from web.http.audit_events import record_event
from web.services import now, services, token_lifetimes

tokens = AppGroup("tokens", help="Personal access tokens.")


@tokens.command("create")
@click.argument("user")
@click.option("--name", required=True, help="What the token is for.")
@click.option("--scopes", required=True, help="Space-separated scopes.")
@click.option(
    "--days",
    type=click.IntRange(1, 3650),
    help="Lifetime in days; by default a year, or no expiry before release 16.0.",
)
@one_transaction
def create_token_command(*, user: str, name: str, scopes: str, days: int | None) -> dict[str, Any]:
    """Create a personal access token for USER. It is shown only once."""
    lifetime = token_lifetimes().usual if days is None else timedelta(days=days)
    token = create_token(
        get_user(user, session=db.session()).id,
        TokenDetails(
            name=name,
            scopes=scopes.replace(",", " "),
            expires_at=None if lifetime is None else now() + lifetime,
        ),
        session=db.session(),
        keyring=services().keyring,
        now=now(),
    )
    _record(EventKind.TOKEN_ISSUED, token.token)
    return {**token.token.as_json(), "token": token.clear}


@tokens.command("list")
@click.argument("user")
@one_transaction
def list_tokens_command(*, user: str) -> dict[str, Any]:
    """List the personal access tokens of USER, newest first."""
    wanted = TokenFilter(owner_id=get_user(user, session=db.session()).id)
    found = list_tokens(wanted, session=db.session(), now=now())
    return {"tokens": [token.as_json() for token in found.items]}


@tokens.command("show")
@click.argument("token_id", metavar="ID", type=click.IntRange(1))
@one_transaction
def show_token_command(*, token_id: int) -> dict[str, Any]:
    """Show the personal access token ID, without its value."""
    return get_token(token_id, owner_id=None, session=db.session(), now=now()).as_json()


@tokens.command("revoke")
@click.argument("token_id", metavar="ID", type=click.IntRange(1))
@one_transaction
def revoke_token_command(*, token_id: int) -> dict[str, Any]:
    """Revoke the personal access token ID. `tokens list` shows the ids."""
    token = revoke_token(token_id, owner_id=None, session=db.session(), now=now())
    _record(EventKind.TOKEN_REVOKED, token)
    return token.as_json()


def _record(kind: EventKind, token: TokenView) -> None:
    details = {"token_id": token.id, "scopes": " ".join(token.scopes)}
    record_event(Event(kind=kind, user_id=token.user_id, subject=token.name, details=details))
