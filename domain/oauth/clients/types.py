"""Request bodies and API resources for applications."""

import json
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationInfo,
    field_validator,
)

from domain.core.types.base import (
    Body,
    Option,
    Resource,
    Time,
    join_option_values,
    remove_duplicates,
    split_words,
)
from domain.oauth.clients.redirect_uris import is_insecure_redirect_uri


def _split_uris(value: Any) -> Any:
    """Split a string of URIs at spaces and line breaks, and return other values unchanged."""
    return value.split() if isinstance(value, str) else value


def _split_scopes(value: Any) -> Any:
    # Commas do not separate scopes: the protocol only uses spaces.
    return value.split() if isinstance(value, str) else split_words(join_option_values(value))


def _format_jwks(value: Any) -> Any:
    return json.dumps(value) if isinstance(value, dict) else value


_Words = Annotated[tuple[str, ...], BeforeValidator(_split_scopes)]


class ApplicationDetails(Body):
    """The settings of an application."""

    name: str
    redirect_uris: Annotated[
        tuple[str, ...],
        BeforeValidator(_split_uris),
        AfterValidator(remove_duplicates),
        Option("--redirect-uri"),
        Field(description="Redirect URIs. Not needed for the device and password grants."),
    ] = ()
    scopes: _Words = Field(description="Scopes, separated by spaces.")
    confidential: Annotated[
        bool,
        Option("--confidential/--public"),
        Field(
            description="True if the application can keep a client secret. A public application "
            "has no secret and must use PKCE."
        ),
    ] = True
    require_pkce: bool = Field(
        default=False, description="True if a confidential application must also use PKCE."
    )
    refresh_for_devices: bool = Field(
        default=False,
        description="True to issue refresh tokens for the device and password grants as well.",
    )
    #: True if access tokens must be bound to a key of the client (RFC 9449).
    require_dpop: bool = Field(
        default=False, description="True if access tokens must be bound to a key (DPoP)."
    )
    omit_iss: bool = Field(
        default=False,
        description="True to omit `iss` (RFC 9207) from authorization responses, for "
        "compatibility with clients written for GitLab.",
    )
    service_account: bool = Field(
        default=False,
        description="True to give a confidential application a service account, for the client "
        "credentials grant.",
    )
    #: Public keys (RFC 7523), in a form that `parse_public_keys` accepts.
    jwks: Annotated[
        str | None,
        BeforeValidator(_format_jwks),
        Option("--public-keys", null="--no-public-keys"),
        Field(
            description="Public keys for `private_key_jwt`: a JWK Set, a JWK or a public key in "
            "PEM format."
        ),
    ] = None
    backchannel_logout_uri: Annotated[
        str | None,
        BeforeValidator(lambda value: value or None),
        Field(
            description="URL that is notified when a user signs out (OpenID Connect Back-Channel "
            "Logout)."
        ),
    ] = None
    refresh_idle_days: Annotated[int, Field(ge=1, le=3650)] | None = Field(
        default=None, description="Days after which an unused refresh token expires."
    )
    refresh_longest_days: Annotated[int, Field(ge=1, le=3650)] | None = Field(
        default=None, description="Days after the user's consent when refresh tokens expire."
    )
    #: Paths of the allowed groups. None keeps the setting, and an empty list allows all users.
    allowed_groups: Annotated[
        _Words | None,
        Option("--allow-group", null="--allow-everybody"),
        Field(description="Groups whose members can use the application. Empty for all users."),
    ] = None
    #: True if the application is trusted. Only administrators can set this field and the fields
    #: below. None keeps the setting.
    trusted: Annotated[
        bool | None,
        Option("--trusted/--not-trusted"),
        Field(description="True to skip the consent page. Only for instance-wide applications."),
    ] = None
    #: True if the application belongs to the instance and not to a user. This setting cannot be
    #: reverted.
    is_instance_wide: Annotated[
        bool,
        Option("--instance-wide/--no-instance-wide"),
        Field(description="True if the application belongs to the instance instead of a user."),
    ] = False
    #: Grant types that require permission and that the application may use.
    allowed_grants: _Words | None = None


class ApplicationView(Resource):
    """A registered application with its settings."""

    model_config = ConfigDict(populate_by_name=True)

    id: int
    application_id: str = Field(
        validation_alias="uid", description="The `client_id` in OAuth requests."
    )
    name: str
    owner_id: int
    redirect_uris: tuple[str, ...]
    scopes: _Words
    confidential: bool
    require_pkce: bool
    refresh_for_devices: bool
    require_dpop: bool
    omit_iss: bool
    service_account: bool = Field(description="True if the application has a service account.")
    jwks: Mapping[str, Any] | None = Field(description="Public keys of the application.")
    backchannel_logout_uri: str | None
    refresh_idle_days: int | None
    refresh_longest_days: int | None
    allowed_group_ids: tuple[int, ...] | None
    instance_wide: bool = Field(validation_alias="is_instance_wide")
    trusted: bool = Field(description="True if the consent page is skipped.")
    allowed_grants: _Words = Field(
        description="Grant types that need permission, and that the application may use."
    )
    created_at: Time
    last_used_at: Time | None
    client_metadata: Mapping[str, Any] | None = Field(exclude=True)

    @field_validator("trusted")
    @classmethod
    def _check_instance_wide(cls, value: bool, others: ValidationInfo) -> bool:  # noqa: FBT001
        # Users' applications are never trusted: their owners could change the redirect URIs.
        return value and bool(others.data.get("instance_wide"))

    @property
    def is_self_registered(self) -> bool:
        """True if the client registered itself and supplied its name and URLs (RFC 7591)."""
        return self.client_metadata is not None

    @property
    def insecure_redirect_uris(self) -> tuple[str, ...]:
        """The redirect URIs that send a code unencrypted."""
        return tuple(uri for uri in self.redirect_uris if is_insecure_redirect_uri(uri))

    def is_owned_by(self, user_id: int) -> bool:
        """Return whether a user owns the application.

        Instance-wide applications have no owner.
        """
        return self.owner_id == user_id and not self.instance_wide


class ApplicationOverview(ApplicationView):
    """An application with its owner and the number of its users."""

    owner_username: str
    owner_name: str
    #: Number of users who have authorized the application and have not revoked its access. This
    #: number and `token_count` are exact up to COUNT_LIMIT; a larger number is a lower bound.
    people_count: int
    token_count: int
