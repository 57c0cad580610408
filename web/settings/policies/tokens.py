"""Lifetimes of personal, project and group access tokens, derived from the settings."""

from datetime import timedelta

from domain.oauth.personal_tokens.lifetimes import TokenLifetimes
from domain.releases.schedule import CHANGES_BY_ID
from domain.releases.version import parse_release
from web.settings.environment import Settings


def build_token_lifetimes(current: Settings) -> TokenLifetimes:
    """Return the lifetimes of access tokens.

    The running release determines whether a token may have no expiry date.
    """
    change = CHANGES_BY_ID["tokens-without-expiry"]
    return TokenLifetimes.from_max_lifetime(
        timedelta(days=current.personal_access_token_lifetime_days),
        may_never_end=not change.applies_in(parse_release(current.release)),
    )
