"""The users of the demo with their roles, and the names of its group and projects."""

from dataclasses import dataclass

GROUP = "acme"
SHOP, PAYMENTS, SITE, BACKUPS = "acme/shop", "acme/payments", "acme/website", "acme/ops/backups"


@dataclass(frozen=True, kw_only=True)
class Person:
    """A user of the demo."""

    username: str
    name: str
    #: Role in the group. Empty for an administrator who is not a member.
    role: str
    #: Purpose of the user in the demo.
    shows: str

    @property
    def email(self) -> str:
        """Email address of the account."""
        return f"{self.username}@acme.example"


PEOPLE = (
    Person(username="grace", name="Grace Hall", role="", shows="administrator of the instance"),
    Person(username="olivia", name="Olivia Berg", role="Owner", shows="owns the group"),
    Person(username="marta", name="Marta Silva", role="Maintainer", shows="sets things up"),
    Person(username="alice", name="Alice Kimura", role="Developer", shows="on call"),
    Person(username="bob", name="Bob Okafor", role="Developer", shows="on call"),
    Person(username="chen", name="Chen Wei", role="Developer", shows="on call, by day"),
    Person(username="rita", name="Rita Novak", role="Reporter", shows="reads"),
    Person(username="pia", name="Pia Lindqvist", role="Planner", shows="plans"),
    Person(username="gus", name="Gus Moreno", role="Guest", shows="sees little"),
)
ON_CALL = ("alice", "bob", "chen")
