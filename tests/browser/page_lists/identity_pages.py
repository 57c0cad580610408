"""The pages of identity providers, for people and for administrators."""

from models import Identity
from tests.support.accounts.administration import id_of
from tests.support.accounts.people import Person, database_of, now, unique
from tests.support.service.live import LiveGatebell

#: The name in URLs of a provider that cannot be reached.
SLUG = "out-of-reach"


def identity_pages(gatebell: LiveGatebell, person: Person, nasty: str) -> list[str]:
    """Return the pages of somebody who is connected with one provider, and could be with another.

    The last one is that of a sign-in that came to nothing.
    """
    add_provider(gatebell, nasty, SLUG)
    with database_of(gatebell) as session:
        session.add(
            Identity(
                provider_id=add_provider(gatebell, nasty, unique("idp")),
                subject=person.username,
                user_id=id_of(gatebell, person),
                name=nasty[:200],
                created_at=now(),
                last_used_at=now(),
            )
        )
    return [
        "/-/user_settings/security",
        f"/-/user_settings/security/identities/{SLUG}",
        "/users/sign_in?again=yes",
        f"/users/auth/{SLUG}/callback",
    ]


def add_provider(gatebell: LiveGatebell, nasty: str, slug: str) -> int:
    """Add a provider and return its id."""
    title = "".join(each for each in nasty if each.isprintable())[:100].strip()
    client = ("--client-id", "x", "--client-secret", "x", "--issuer", "http://127.0.0.1:1")
    command = ("identity-providers", "create", "--slug", slug, "--title", title)
    made = gatebell.cli(*command, *client, "--preset", "entra", "--administrators-group", title)
    return int(made["id"])


def remove_providers(gatebell: LiveGatebell) -> None:
    """Remove all, so that nobody finds them on the sign-in page."""
    for each in gatebell.cli("identity-providers", "list")["identity_providers"]:
        gatebell.cli("identity-providers", "delete", str(each["id"]))
