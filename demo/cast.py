"""The users of the demo with their roles, and the names of its group and projects."""

from dataclasses import dataclass

GROUP_PATH = "acme"
SHOP, PAYMENTS, SITE, BACKUPS = "acme/shop", "acme/payments", "acme/website", "acme/ops/backups"


@dataclass(frozen=True, kw_only=True)
class DemoUser:
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


DEMO_USERS = (
    DemoUser(username="grace", name="Grace Hall", role="", shows="administrator of the instance"),
    DemoUser(username="olivia", name="Olivia Berg", role="Owner", shows="owns the group"),
    DemoUser(username="marta", name="Marta Silva", role="Maintainer", shows="sets things up"),
    DemoUser(username="alice", name="Alice Kimura", role="Developer", shows="on call"),
    DemoUser(username="bob", name="Bob Okafor", role="Developer", shows="on call"),
    DemoUser(username="chen", name="Chen Wei", role="Developer", shows="on call, by day"),
    DemoUser(username="rita", name="Rita Novak", role="Reporter", shows="reads"),
    DemoUser(username="pia", name="Pia Lindqvist", role="Planner", shows="plans"),
    DemoUser(username="gus", name="Gus Moreno", role="Guest", shows="sees little"),
)
ON_CALL_USERNAMES = ("alice", "bob", "chen")
