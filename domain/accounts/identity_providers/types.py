"""API types for identity providers."""

from collections.abc import Iterable
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import AfterValidator, BeforeValidator, Field

from domain.access.roles import Role, parse_role
from domain.accounts.identity_providers.presets import PRESETS
from domain.core.types.base import (
    Body,
    Line,
    Name,
    RequiredText,
    Resource,
    Text,
    Time,
    Words,
    make_fields_optional,
)
from domain.core.types.pagination import OffsetQuery


class GroupRoleMapping(NamedTuple):
    """A role in a group of this instance, for the members of a group at a provider."""

    upstream: str
    path: str
    role: Role

    @classmethod
    def from_text(cls, text: str) -> "GroupRoleMapping":
        """Parse a string of the form `provider group = group path: Role`.

        Raise ValueError if the string is malformed.
        """
        # Paths contain neither separator, but group names at a provider can.
        upstream, _, given = text.rpartition("=")
        path, _, role = given.partition(":")
        if not upstream.strip() or not path.strip():
            message = f'has an invalid line: "{text}". Use: provider group = group path: Role'
            raise ValueError(message)
        return cls(upstream.strip(), path.strip().strip("/"), parse_role(role))

    def __str__(self) -> str:
        """Return the mapping in the form `provider group = group path: Role`."""
        return f"{self.upstream} = {self.path}: {self.role.label}"


def _split_lines(value: Any) -> Any:
    return (
        [each for each in value.splitlines() if each.strip()] if isinstance(value, str) else value
    )


def _normalize_group_roles(lines: Iterable[str]) -> tuple[str, ...]:
    return tuple(str(GroupRoleMapping.from_text(each)) for each in lines)


GroupRoles = Annotated[
    tuple[Text, ...],
    BeforeValidator(_split_lines),
    AfterValidator(_normalize_group_roles),
    Field(max_length=200),
]


class _ProviderFields(Body):
    title: Annotated[Name, Field(max_length=100)] = Field(
        description="Name of the provider on the button of the sign-in page."
    )
    issuer: Text = Field(default="", description="Issuer URL of the provider.")
    client_id: RequiredText
    scopes: Line = Field(default="", description="Scopes, separated by spaces.")
    active: bool = Field(
        default=True, description="True if people can sign in through the provider."
    )
    creates_accounts: bool = Field(
        default=False,
        description="True to create an account when an unknown user signs in.",
    )
    email_domains: Words = Field(
        default=(),
        description="Email domains for which accounts are created. Empty for all domains.",
    )
    vouches_for_email: bool | None = Field(
        default=None, description="True to treat all email addresses from the provider as verified."
    )
    trusts_second_factor: bool = Field(
        default=False,
        description=(
            "True to skip the second factor if the provider has already checked a second factor."
        ),
    )
    groups_claim: Line = Field(default="", description="Claim that contains the groups.")
    group_roles: GroupRoles = Field(
        default=(),
        description="Roles for provider groups, each as `provider group = group path: Role`.",
    )
    administrators_group: Line = Field(
        default="", description="Group of the provider whose members are administrators."
    )


class IdentityProviderBody(_ProviderFields):
    """A new identity provider. The preset determines the values of omitted fields."""

    slug: str = Field(
        pattern=r"^[a-z0-9][a-z0-9-]{0,62}$",
        description="Name in URLs: lowercase letters, digits and dashes.",
    )
    client_secret: RequiredText = Field(
        description="Client secret. It is stored encrypted and never shown."
    )
    preset: Literal[*PRESETS] = Field(  # type: ignore[valid-type]
        default="other", description="Preset for the type of provider."
    )


@make_fields_optional
class IdentityProviderChangeBody(_ProviderFields):
    """Changes to an identity provider.

    The slug cannot change, because it is part of the redirect URI registered with the provider.
    """

    client_secret: Text = Field(
        default="", description="New client secret. Empty to keep the current secret."
    )


class IdentityProviderQuery(OffsetQuery):
    """The query for a list of identity providers, oldest first."""

    order_by: Literal["id"] = "id"
    sort: Literal["asc"] = "asc"


class IdentityProvider(Resource):
    """An identity provider, without its client secret."""

    id: int
    slug: str
    title: str
    preset: str
    issuer: str
    client_id: str
    scopes: str
    active: bool
    creates_accounts: bool
    email_domains: tuple[str, ...]
    vouches_for_email: bool
    trusts_second_factor: bool
    groups_claim: str
    group_roles: tuple[str, ...]
    administrators_group: str
    created_at: Time
    redirect_uri: str = Field(description="Redirect URI to register at the provider.")
    identities: int = Field(description="Number of connected accounts.")


class ConnectionTest(Resource):
    """Metadata of an identity provider, with the problems that were found."""

    works: bool
    problem: str | None
    authorization_endpoint: str | None = None
    token_endpoint: str | None = None
    userinfo_endpoint: str | None = None
    jwks_uri: str | None = None
    keys: int | None = Field(default=None, description="Number of signing keys of the provider.")
    names_itself: bool | None = Field(
        default=None,
        description="True if the provider's responses contain its issuer (RFC 9207).",
    )
