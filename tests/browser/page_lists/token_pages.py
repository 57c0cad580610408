"""Tokens of every sort for one person, so that the pages that show them have something to show."""

from sqlalchemy import select

from domain.grace_period import GracePeriod
from domain.keyring import Keyring
from domain.oauth.clients.secrets import renew_secret
from models import AccessToken, PersonalAccessToken
from tests.support.accounts.people import ClientCredentials, Person, database_of, now, settings_of
from tests.support.accounts.resource_tokens import make_bot_token, namespace_of, script_of
from tests.support.oauth.oauth_wire import post_token
from tests.support.service.live import LiveGatebell


def token_pages(
    gatebell: LiveGatebell, person: Person, client: ClientCredentials, project: str, nasty: str
) -> list[str]:
    """Fill the pages with what is hard to show, and return where they are."""
    # Groups have the same pages.
    script, namespace = script_of(gatebell, person), namespace_of(gatebell, "projects", project)
    make_bot_token(script, namespace, name=nasty[:100], description=nasty[:255])
    gone = make_bot_token(script, namespace)
    script.send("DELETE", f"{namespace.by_id}/{gone.id}")
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
