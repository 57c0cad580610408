"""When a new token of the API ends."""

from datetime import date, datetime, timedelta

from domain.oauth.personal_tokens.made_by_applications import ParentAuthorization
from domain.oauth.personal_tokens.tokens import TokenDetails
from web.api.schemas.accounts.access_tokens import TokenBody
from web.services import now, token_lifetimes

#: Lifetime of a rotated token without a requested expiry; API clients rely on it.
_ROTATED_FOR = timedelta(days=7)


def token_details(body: TokenBody, *, parent: ParentAuthorization | None) -> TokenDetails:
    """Return the requested fields of a new token; `parent` is set if an application makes it."""
    return TokenDetails(
        name=body.name,
        scopes=" ".join(body.scopes),
        expires_at=token_lifetimes().expiry_on(body.expires_at, now=now()),
        description=body.description,
        parent=parent,
    )


def rotated_expiry(day: date | None) -> datetime | None:
    """Return the expiry of a rotated token on a day, by default in a week."""
    lifetimes = token_lifetimes()
    usual = now().date() + min(_ROTATED_FOR, lifetimes.longest)
    return lifetimes.expiry_on(day or usual, now=now())
