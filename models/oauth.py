"""OAuth applications, grants, tokens and signing keys."""

from datetime import datetime
from typing import Any

from sqlalchemy import (
    JSON,
    BigInteger,
    Index,
    LargeBinary,
    SmallInteger,
    String,
    Text,
    UniqueConstraint,
    exists,
    false,
)
from sqlalchemy.orm import Mapped, column_property, mapped_column

from models.base import (
    Base,
    BaseWithId,
    BigId,
    UTCDateTimeOrNever,
    build_cascading_foreign_key,
    build_partial_index,
    build_set_null_foreign_key,
)
from models.case_folding import build_folded_column, sync_folded_column


class ServiceAccount(Base):
    """The account with which an application acts on its own behalf (RFC 6749 section 4.4)."""

    __tablename__ = "service_accounts"

    application_id: Mapped[int] = build_cascading_foreign_key(
        "applications", primary_key=True, autoincrement=False
    )
    user_id: Mapped[int] = build_cascading_foreign_key("users", unique=True)


class Application(Base):
    """A registered client (RFC 6749 section 2). `uid` is its client_id."""

    __tablename__ = "applications"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    uid: Mapped[str] = mapped_column(String(64), unique=True)
    owner_id: Mapped[int] = build_cascading_foreign_key("users", index=True)
    name: Mapped[str] = mapped_column(String(255))
    #: Redirect URIs exactly as registered.
    redirect_uris: Mapped[list[str]] = mapped_column(JSON)
    #: Scopes separated by spaces, in the order of the scope table.
    scopes: Mapped[str] = mapped_column(Text)
    #: True if the application is a confidential client (RFC 6749 section 2.1).
    confidential: Mapped[bool] = mapped_column(default=True)
    require_pkce: Mapped[bool] = mapped_column(default=False)
    #: True if an administrator trusts the application. Its users are not asked for consent.
    trusted: Mapped[bool] = mapped_column(default=False)
    #: True if the application belongs to the instance instead of its owner. All administrators
    #: manage it.
    is_instance_wide: Mapped[bool] = mapped_column(default=False)
    #: True if the device and password grants also issue refresh tokens.
    refresh_for_devices: Mapped[bool] = mapped_column(default=False)
    created_at: Mapped[datetime]
    last_used_at: Mapped[datetime | None]
    #: Client metadata from dynamic registration (RFC 7591). Empty for other applications.
    client_metadata: Mapped[dict[str, Any] | None] = mapped_column(JSON)
    #: Keyed hash of the registration access token (RFC 7592).
    registration_digest: Mapped[bytes | None] = mapped_column(
        LargeBinary(32), unique=True, index=True
    )
    #: Time at which the hash was renewed. NULL if it dates from the creation of the application.
    keyed_at: Mapped[datetime | None]
    #: True if the application's tokens must be DPoP-bound (RFC 9449).
    require_dpop: Mapped[bool] = mapped_column(default=False)
    #: True if authorization responses omit `iss` (RFC 9207). Applications written for GitLab treat
    #: `iss` as an error.
    omit_iss: Mapped[bool] = mapped_column(default=False, server_default=false())
    #: Grant types that require an administrator's permission and have it, separated by spaces.
    allowed_grants: Mapped[str] = mapped_column(Text, default="", server_default="")
    #: Public keys with which the application authenticates (RFC 7523), as a JWK Set.
    jwks: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))
    #: URL that is notified when sign-ins end (OpenID Connect Back-Channel Logout).
    backchannel_logout_uri: Mapped[str | None] = mapped_column(Text)
    #: Groups whose members may use the application. NULL if all users may use it.
    #: If all of these groups were deleted, no user may use it.
    allowed_group_ids: Mapped[list[int] | None] = mapped_column(JSON(none_as_null=True))
    #: Maximum idle time and maximum lifetime of refresh tokens, in days.
    refresh_idle_days: Mapped[int | None] = mapped_column(SmallInteger)
    refresh_longest_days: Mapped[int | None] = mapped_column(SmallInteger)
    name_key: Mapped[str | None] = build_folded_column()
    #: True if the application has a service account.
    service_account: Mapped[bool] = column_property(
        exists()
        .where(ServiceAccount.application_id == id)  # noqa: A003 - the column above
        .correlate_except(ServiceAccount)
    )


sync_folded_column(Application.name, Application.name_key)


class ApplicationSecret(BaseWithId):
    """A valid client secret. Only its keyed hash is stored."""

    __tablename__ = "application_secrets"

    application_id: Mapped[int] = build_cascading_foreign_key("applications", index=True)
    digest: Mapped[bytes] = mapped_column(LargeBinary(32))
    created_at: Mapped[datetime]
    #: Expiry of the secret, set when a newer secret is issued. Both secrets are valid until it
    #: expires.
    expires_at: Mapped[datetime | None]
    last_used_at: Mapped[datetime | None]
    #: Time at which the keyed hash was renewed. NULL if it dates from the creation of the secret.
    keyed_at: Mapped[datetime | None]


class Authorization(BaseWithId):
    """A grant by a user: its authorization code, and the family of tokens issued from it.

    The code (RFC 6749 section 4.1.2) is in the row itself, so that redeeming it takes a single
    UPDATE. The tokens of the grant can be revoked by this row's ID.
    """

    __tablename__ = "authorizations"

    application_id: Mapped[int] = build_cascading_foreign_key("applications")
    user_id: Mapped[int] = build_cascading_foreign_key("users", index=True)
    scopes: Mapped[str] = mapped_column(Text)
    redirect_uri: Mapped[str | None] = mapped_column(Text)
    #: S256 code challenge (RFC 7636), or NULL.
    code_challenge: Mapped[str | None] = mapped_column(String(128))
    #: OpenID Connect nonce, which is returned in the ID token.
    nonce: Mapped[str | None] = mapped_column(Text)
    #: Time at which the user last authenticated.
    auth_time: Mapped[datetime]
    code_digest: Mapped[bytes | None] = mapped_column(LargeBinary(32), unique=True)
    code_expires_at: Mapped[datetime | None]
    code_used_at: Mapped[datetime | None]
    #: Thumbprint of the DPoP key that is required to redeem the code (RFC 9449).
    key_thumbprint: Mapped[str | None] = mapped_column(String(64))
    #: Authentication methods of the user, separated by spaces, which are OpenID Connect's amr.
    methods: Mapped[str | None] = mapped_column(String(64))
    #: ID of the sign-in for the application, which is OpenID Connect's sid.
    sid: Mapped[str | None] = mapped_column(String(64))
    created_at: Mapped[datetime]
    revoked_at: Mapped[datetime | None]

    __table_args__ = (
        # The users of an application are listed and counted in the order of this index.
        Index("ix_authorizations_application_id_user_id", "application_id", "user_id"),
        # This index finds unredeemed codes to prune. Redemptions look up an unused code by its key.
        # The second condition prevents them from scanning this index when there are no statistics.
        build_partial_index(
            "ix_authorizations_unused_code",
            "code_expires_at",
            where="code_used_at IS NULL AND code_expires_at IS NOT NULL",
        ),
    )


class BackchannelSession(BaseWithId):
    """A sign-in to an application that must be notified when the sign-in ends."""

    __tablename__ = "backchannel_sessions"

    application_id: Mapped[int] = build_cascading_foreign_key("applications")
    #: Sign-in at this service. NULL once the sign-in has ended.
    sign_in_id: Mapped[int | None] = build_set_null_foreign_key("sign_ins", index=True)
    user_id: Mapped[int] = build_cascading_foreign_key("users", index=True)
    sid: Mapped[str] = mapped_column(String(64))
    #: Time of the next notification attempt if the sign-in has ended.
    due_at: Mapped[datetime] = mapped_column()
    tries: Mapped[int] = mapped_column(SmallInteger, default=0)
    #: Time at which the sign-in ended, according to the database's clock. A trigger sets it
    #: (migration 0124).
    ended_at: Mapped[datetime | None]

    __table_args__ = (
        UniqueConstraint("application_id", "sid"),
        build_partial_index("ix_backchannel_sessions_due_at", due_at, where=sign_in_id.is_(None)),
    )


class Consent(BaseWithId):
    """The scopes that a user has approved for an application."""

    __tablename__ = "consents"

    user_id: Mapped[int] = build_cascading_foreign_key("users")
    application_id: Mapped[int] = build_cascading_foreign_key("applications")
    scopes: Mapped[str] = mapped_column(Text)
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]

    __table_args__ = (
        UniqueConstraint("user_id", "application_id"),
        Index("ix_consents_application_id_user_id", "application_id", "user_id"),
    )


class AccessToken(BaseWithId):
    """An access token and the refresh token issued with it (RFC 6749 sections 1.4 and 1.5)."""

    __tablename__ = "access_tokens"

    #: Grant from which this pair of tokens was issued.
    authorization_id: Mapped[int | None] = build_cascading_foreign_key("authorizations", index=True)
    application_id: Mapped[int | None] = build_cascading_foreign_key("applications")
    user_id: Mapped[int] = build_cascading_foreign_key("users", index=True)
    digest: Mapped[bytes] = mapped_column(LargeBinary(32), unique=True)
    refresh_digest: Mapped[bytes | None] = mapped_column(LargeBinary(32), unique=True)
    scopes: Mapped[str] = mapped_column(Text)
    created_at: Mapped[datetime]
    #: Expiry of the access token. The refresh token is valid longer. NULL if the token does not
    #: expire.
    expires_at: Mapped[datetime | None]
    #: Time at which the pair or its family was rotated or revoked.
    revoked_at: Mapped[datetime | None] = mapped_column(index=True)
    #: Time at which the pair was refreshed.
    refreshed_at: Mapped[datetime | None]
    #: IP address of the client that requested the token.
    address: Mapped[str | None] = mapped_column(String(64))
    user_agent: Mapped[str | None] = mapped_column(String(255))
    #: Last use of the access token, to the minute.
    last_used_at: Mapped[datetime | None]
    last_used_address: Mapped[str | None] = mapped_column(String(64))
    #: Thumbprint of the DPoP key that the token is bound to (RFC 9449).
    key_thumbprint: Mapped[str | None] = mapped_column(String(64))
    #: True if the token keeps administrator access because it is older than the `admin_mode` scope.
    keeps_admin_mode: Mapped[bool] = mapped_column(default=False, server_default=false())
    #: True if the token was exchanged for another token (RFC 8693).
    is_exchanged: Mapped[bool] = mapped_column(default=False, server_default=false())

    __table_args__ = (
        # This index is used to count tokens that are not revoked. Applications with refresh tokens
        # have few such tokens.
        Index("ix_access_tokens_application_id_revoked_at", "application_id", "revoked_at"),
        # This index finds the users of an application who have no grant.
        build_partial_index(
            "ix_access_tokens_without_grant",
            "application_id",
            "user_id",
            where="authorization_id IS NULL AND revoked_at IS NULL",
        ),
        # This index finds expired tokens to prune.
        build_partial_index("ix_access_tokens_alone", "expires_at", where="refresh_digest IS NULL"),
    )


class PersonalAccessToken(BaseWithId):
    """An access token for scripts, owned by a user or by the bot of a project or group."""

    __tablename__ = "personal_access_tokens"

    user_id: Mapped[int] = build_cascading_foreign_key("users", index=True)
    name: Mapped[str] = mapped_column(String(255))
    digest: Mapped[bytes] = mapped_column(LargeBinary(32), unique=True)
    scopes: Mapped[str] = mapped_column(Text)
    created_at: Mapped[datetime]
    #: Expiry of the token. None if it does not expire, which only releases before 16.0 allow.
    expires_at: Mapped[datetime | None] = mapped_column(UTCDateTimeOrNever, nullable=False)
    revoked_at: Mapped[datetime | None]
    last_used_at: Mapped[datetime | None]
    last_used_address: Mapped[str | None] = mapped_column(String(64))
    description: Mapped[str] = mapped_column(Text, default="")
    #: ID of the first token in a chain of rotations.
    family_id: Mapped[int | None] = mapped_column(BigInteger, index=True)
    #: Time at which the keyed hash was renewed. NULL if it dates from the creation of the token.
    keyed_at: Mapped[datetime | None]
    name_key: Mapped[str | None] = build_folded_column()
    #: Grant of the application that created the token. The token ends with the grant.
    authorization_id: Mapped[int | None] = build_cascading_foreign_key("authorizations", index=True)
    #: Thumbprint of the DPoP key that the token is bound to (RFC 9449).
    key_thumbprint: Mapped[str | None] = mapped_column(String(64))
    #: True if the token keeps administrator access because it is older than the `admin_mode` scope.
    keeps_admin_mode: Mapped[bool] = mapped_column(default=False, server_default=false())

    __table_args__ = (
        # This index finds tokens that expire soon, never expire, or expired long ago.
        Index("ix_personal_access_tokens_expires_at_id", "expires_at", "id"),
        build_partial_index(
            "ix_personal_access_tokens_revoked_at", "revoked_at", where="revoked_at IS NOT NULL"
        ),
    )


sync_folded_column(PersonalAccessToken.name, PersonalAccessToken.name_key)


class RejectedOAuthRequest(BaseWithId):
    """A rejected request that named an application. A few requests are stored for each reason.

    Anyone can send such requests, since a client_id is public. A stored request does not prove that
    the application sent it.
    """

    __tablename__ = "token_refusals"

    application_id: Mapped[int] = build_cascading_foreign_key("applications")
    #: Name of a `domain.oauth.rejection_reasons.RejectionReason`.
    reason: Mapped[str] = mapped_column(String(32))
    #: The `grant_type`, or the name of another endpoint, such as the authorization endpoint.
    request: Mapped[str] = mapped_column(String(64))
    #: Error code from RFC 6749 section 4.1.2.1 or 5.2, and the message that the client received.
    error: Mapped[str] = mapped_column(String(64))
    description: Mapped[str] = mapped_column(Text)
    refused_at: Mapped[datetime] = mapped_column(index=True)
    #: IP address. NULL for authorization requests, which come from users' browsers.
    address: Mapped[str | None] = mapped_column(String(64))
    user_agent: Mapped[str | None] = mapped_column(String(255))
    #: Unregistered redirect URI of the request, without parts that may be secret.
    redirect_uri: Mapped[str | None] = mapped_column(Text)
    #: Number of later rejections of the same kind that are counted here instead of stored.
    skipped: Mapped[int] = mapped_column(default=0)

    __table_args__ = (
        Index("ix_token_refusals_application_id_reason_id", "application_id", "reason", "id"),
    )


class DeviceAuthorization(BaseWithId):
    """A device authorization request, which is kept until its code is redeemed or pruned."""

    __tablename__ = "device_authorizations"

    application_id: Mapped[int] = build_cascading_foreign_key("applications", index=True)
    scopes: Mapped[str] = mapped_column(Text)
    device_code_digest: Mapped[bytes] = mapped_column(LargeBinary(32), unique=True)
    user_code_digest: Mapped[bytes] = mapped_column(LargeBinary(32), unique=True)
    created_at: Mapped[datetime]
    expires_at: Mapped[datetime] = mapped_column(index=True)
    #: Seconds between polls. Each early poll adds 5 seconds, up to a limit (RFC 8628 section 3.5).
    interval: Mapped[int] = mapped_column(SmallInteger)
    last_polled_at: Mapped[datetime | None]
    #: IP address and user agent of the device, which are shown to the approving user.
    address: Mapped[str | None] = mapped_column(String(64))
    user_agent: Mapped[str | None] = mapped_column(String(255))
    #: User who opened the request. Only this user can approve or deny it.
    user_id: Mapped[int | None] = build_cascading_foreign_key("users", index=True)
    #: Time at which the approving user last authenticated.
    auth_time: Mapped[datetime | None]
    approved_at: Mapped[datetime | None]
    denied_at: Mapped[datetime | None]
    redeemed_at: Mapped[datetime | None]


class PushedRequest(BaseWithId):
    """A pushed authorization request, to which a request_uri refers (RFC 9126)."""

    __tablename__ = "pushed_requests"

    digest: Mapped[bytes] = mapped_column(LargeBinary(32), unique=True)
    application_id: Mapped[int] = build_cascading_foreign_key("applications", index=True)
    parameters: Mapped[dict[str, Any]] = mapped_column(JSON)
    created_at: Mapped[datetime]
    expires_at: Mapped[datetime] = mapped_column(index=True)


class SeenProof(Base):
    """A used DPoP proof, which is not accepted again (RFC 9449 section 11.1)."""

    __tablename__ = "seen_proofs"

    #: Keyed hash of the key's thumbprint and the proof's jti.
    digest: Mapped[bytes] = mapped_column(LargeBinary(32), primary_key=True)
    expires_at: Mapped[datetime] = mapped_column(index=True)


class SigningKey(BaseWithId):
    """An RSA key pair for signatures.

    The public key is published before the key is first used, and stays published until all
    signatures of the key have expired.
    """

    __tablename__ = "signing_keys"

    #: JWK thumbprint (RFC 7638).
    kid: Mapped[str] = mapped_column(String(64), unique=True)
    #: Published public JWK (RFC 7517).
    public_jwk: Mapped[dict[str, str]] = mapped_column(JSON)
    #: Encrypted private JWK.
    private_ciphertext: Mapped[str] = mapped_column(Text)
    created_at: Mapped[datetime]
    #: Time at which a newer key replaced this key. The key stays published until its ID tokens have
    #: expired.
    retired_at: Mapped[datetime | None]
