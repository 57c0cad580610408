"""How often somebody may say who they are, wherever they say it: pages and protocols share it."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from domain.accounts.attempt_limits import AttemptLimit
from domain.accounts.passwords import HashCost
from domain.accounts.users import Knock
from domain.addresses import client_of
from models.folding import fold


@dataclass(frozen=True, kw_only=True)
class KnockLimits:
    """The instance's limits on wrong names and passwords, and on what is asked after them."""

    per_account: int
    per_address: int
    second_factor_per_account: int
    window: timedelta
    cost: HashCost

    def knock(
        self,
        login: str,
        password: str,
        *,
        address: str | None,
        marks: Mapping[int, str] | None = None,
    ) -> Knock:
        """Return somebody who knocks from an address, with the limits that apply.

        `marks` are those of the accounts that have signed in from the same browser before.
        """
        return Knock(
            login=login,
            password=password,
            account_limit=AttemptLimit(
                subject=f"sign-in account {fold(login.strip())}",
                attempts=self.per_account,
                window=self.window,
            ),
            address_limit=self.address_limit(address),
            browser_limits={
                user_id: self.browser_limit(mark) for user_id, mark in (marks or {}).items()
            },
            cost=self.cost,
        )

    def browser_limit(self, mark: str) -> AttemptLimit:
        """Return how often a browser in which somebody has signed in before may be wrong."""
        return AttemptLimit(
            subject=f"sign-in browser {mark}", attempts=self.per_account, window=self.window
        )

    def email_limit(self, user_id: int) -> AttemptLimit:
        """Return how often somebody may want an e-mail address that is another's."""
        return AttemptLimit(
            subject=f"taken e-mail, user {user_id}", attempts=self.per_account, window=self.window
        )

    def address_limit(self, address: str | None) -> AttemptLimit:
        """Return how often somebody at an address may be wrong, at every step of signing in."""
        return AttemptLimit(
            subject=f"sign-in address {client_of(address or '')}",
            attempts=self.per_address,
            window=self.window,
        )
