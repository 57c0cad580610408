"""How often somebody may say who they are, wherever they say it: pages and protocols share it."""

from dataclasses import dataclass
from datetime import timedelta

from domain.accounts.attempts import AttemptLimit
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

    def knock(self, login: str, password: str, *, address: str | None) -> Knock:
        """Return somebody who knocks from an address, with the limits that apply."""
        return Knock(
            login=login,
            password=password,
            account_limit=AttemptLimit(
                subject=f"sign-in account {fold(login.strip())}",
                attempts=self.per_account,
                window=self.window,
            ),
            address_limit=self.address_limit(address),
            cost=self.cost,
        )

    def address_limit(self, address: str | None) -> AttemptLimit:
        """Return how often somebody at an address may be wrong, at every step of signing in."""
        return AttemptLimit(
            subject=f"sign-in address {client_of(address or '')}",
            attempts=self.per_address,
            window=self.window,
        )
