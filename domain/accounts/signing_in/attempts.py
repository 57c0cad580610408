"""Limits on sign-in attempts, shared by the pages and the password grant."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from domain.accounts.attempt_limits import AttemptLimit
from domain.accounts.passwords import HashCost
from domain.accounts.users import SignInAttempt
from domain.ip_addresses import client_prefix
from models.folding import fold


@dataclass(frozen=True, kw_only=True)
class SignInLimits:
    """The instance's limits on failed sign-in and second-factor attempts."""

    per_account: int
    per_address: int
    second_factor_per_account: int
    window: timedelta
    cost: HashCost

    def attempt(
        self,
        login: str,
        password: str,
        *,
        address: str | None,
        device_ids: Mapping[int, str] | None = None,
    ) -> SignInAttempt:
        """Build a sign-in attempt from an IP address, with the limits that apply to it.

        `device_ids` maps the accounts that have signed in from the same browser before to the ids
        in its device cookie.
        """
        return SignInAttempt(
            login=login,
            password=password,
            account_limit=AttemptLimit(
                subject=f"sign-in account {fold(login.strip())}",
                attempts=self.per_account,
                window=self.window,
            ),
            address_limit=self.address_limit(address),
            browser_limits={
                user_id: self.browser_limit(device_id)
                for user_id, device_id in (device_ids or {}).items()
            },
            cost=self.cost,
        )

    def browser_limit(self, device_id: str) -> AttemptLimit:
        """Return the limit for a browser that an account has signed in from before."""
        return AttemptLimit(
            subject=f"sign-in browser {device_id}", attempts=self.per_account, window=self.window
        )

    def email_limit(self, user_id: int) -> AttemptLimit:
        """Return the limit on messages to e-mail addresses that a user wants to confirm."""
        return AttemptLimit(
            subject=f"e-mail address, user {user_id}", attempts=self.per_account, window=self.window
        )

    def address_limit(self, address: str | None) -> AttemptLimit:
        """Return the limit for an IP address, over all steps of signing in."""
        return AttemptLimit(
            subject=f"sign-in address {client_prefix(address or '')}",
            attempts=self.per_address,
            window=self.window,
        )
