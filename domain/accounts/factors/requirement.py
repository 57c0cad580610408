"""Who has to have a second factor, and from when on."""

from dataclasses import dataclass
from datetime import date

NOBODY, ADMINISTRATORS, EVERYBODY = "nobody", "administrators", "everybody"


@dataclass(frozen=True, kw_only=True)
class SecondFactorRule:
    """The rule of the instance."""

    #: NOBODY, ADMINISTRATORS or EVERYBODY.
    whom: str
    #: The day (UTC) from which it holds; until then people are told. None for a rule without one.
    begins: date | None = None

    def names(self, *, is_admin: bool) -> bool:
        """Return whether somebody has to have a second factor, now or from its day on."""
        return self.whom == EVERYBODY or (self.whom == ADMINISTRATORS and is_admin)

    def holds(self, today: date) -> bool:
        """Return whether its day has come."""
        return self.begins is None or self.begins <= today

    def binds(self, today: date, *, is_admin: bool) -> bool:
        """Return whether somebody has to have a second factor now."""
        return self.names(is_admin=is_admin) and self.holds(today)
