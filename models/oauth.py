"""Applications, what people grant them, and tokens."""

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
    BigId,
    Numbered,
    UTCDateTimeOrNever,
    belongs_to,
    partial_index,
    refers_to,
)
from models.folding import folded, keep_folded


class ServiceAccount(Base):
    """The account that an application acts as by itself (RFC 6749 section 4.4)."""

    __tablename__ = "service_accounts"

    application_id: Mapped[int] = belongs_to("applications", primary_key=True, autoincrement=False)
    user_id: Mapped[int] = belongs_to("users", unique=True)


class Application(Base):
    """A registered client (RFC 6749 section 2); `uid` is its client_id."""

    __tablename__ = "applications"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    uid: Mapped[str] = mapped_column(String(64), unique=True)
    owner_id: Mapped[int] = belongs_to("users", index=True)
    name: Mapped[str] = mapped_column(String(255))
    #: Exactly as registered.
    redirect_uris: Mapped[list[str]] = mapped_column(JSON)
    #: Space-separated, in the order of the scope table.
    scopes: Mapped[str] = mapped_column(Text)
    #: Whether it is a confidential client (RFC 6749 section 2.1).
    confidential: Mapped[bool] = mapped_column(default=True)
    require_pkce: Mapped[bool] = mapped_column(default=False)
    #: Trusted by an administrator; its users are not asked for consent.
    trusted: Mapped[bool] = mapped_column(default=False)
    #: Belongs to the instance and not to its owner; managed by all administrators.
    is_instance_wide: Mapped[bool] = mapped_column(default=False)
    #: Issue refresh tokens in the device and password grants as well.
    refresh_for_devices: Mapped[bool] = mapped_column(default=False)
    created_at: Mapped[datetime]
    last_used_at: Mapped[datetime | None]
    #: Client metadata of dynamic registration (RFC 7591); empty for all others.
    client_metadata: Mapped[dict[str, Any] | None] = mapped_column(JSON)
    #: Keyed hash of its registration access token (RFC 7592).
    registration_digest: Mapped[bytes | None] = mapped_column(
        LargeBinary(32), unique=True, index=True
    )
    #: When that hash was made; NULL: with the application.
    keyed_at: Mapped[datetime | None]
    #: Whether its tokens must be DPoP-bound (RFC 9449).
    require_dpop: Mapped[bool] = mapped_column(default=False)
    #: Written for GitLab: `iss` (RFC 9207) in an authorization response would be an error to it.
    omit_iss: Mapped[bool] = mapped_column(default=False, server_default=false())
    #: The grant types that an administrator allows it, of those that need it; space-separated.
    allowed_grants: Mapped[str] = mapped_column(Text, default="", server_default="")
    #: The public keys that it authenticates with (RFC 7523), as a JWK Set.
    jwks: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))
    #: Where it hears that sign-ins have ended (OpenID Connect Back-Channel Logout).
    backchannel_logout_uri: Mapped[str | None] = mapped_column(Text)
    #: Only members of these groups can use it, if there are any; none of them if all are gone.
    allowed_group_ids: Mapped[list[int] | None] = mapped_column(JSON(none_as_null=True))
    #: Days after which an unused refresh token ends, and after which every one does.
    refresh_idle_days: Mapped[int | None] = mapped_column(SmallInteger)
    refresh_longest_days: Mapped[int | None] = mapped_column(SmallInteger)
    name_key: Mapped[str | None] = folded()
    #: Whether it has a service account.
    service_account: Mapped[bool] = column_property(
        exists()
        .where(ServiceAccount.application_id == id)  # noqa: A003 - the column above
        .correlate_except(ServiceAccount)
    )


keep_folded(Application.name, Application.name_key)


class ApplicationSecret(Numbered):
    """A valid client secret; only its keyed hash is stored."""

    __tablename__ = "application_secrets"

    application_id: Mapped[int] = belongs_to("applications", index=True)
    digest: Mapped[bytes] = mapped_column(LargeBinary(32))
    created_at: Mapped[datetime]
    #: Set when a newer secret was issued; until then both are valid.
    expires_at: Mapped[datetime | None]
    last_used_at: Mapped[datetime | None]
    #: When the keyed hash was made; NULL: with the secret.
    keyed_at: Mapped[datetime | None]


class Authorization(Numbered):
    """A grant of a user: its authorization code, and the family of tokens issued from it.

    The code (RFC 6749 section 4.1.2) is in the row itself, so that its redemption is one UPDATE,
    and the tokens of the grant can be revoked by this row's id.
    """

    __tablename__ = "authorizations"

    application_id: Mapped[int] = belongs_to("applications")
    user_id: Mapped[int] = belongs_to("users", index=True)
    scopes: Mapped[str] = mapped_column(Text)
    redirect_uri: Mapped[str | None] = mapped_column(Text)
    #: S256 code challenge (RFC 7636), or NULL.
    code_challenge: Mapped[str | None] = mapped_column(String(128))
    #: OpenID Connect: returned in the ID token.
    nonce: Mapped[str | None] = mapped_column(Text)
    #: When the user last authenticated.
    auth_time: Mapped[datetime]
    code_digest: Mapped[bytes | None] = mapped_column(LargeBinary(32), unique=True)
    code_expires_at: Mapped[datetime | None]
    code_used_at: Mapped[datetime | None]
    #: Thumbprint of the DPoP key that is required to redeem the code (RFC 9449).
    key_thumbprint: Mapped[str | None] = mapped_column(String(64))
    #: How the user signed in: OpenID Connect's amr, separated by spaces.
    methods: Mapped[str | None] = mapped_column(String(64))
    #: The sign-in, as the application knows it: OpenID Connect's sid.
    sid: Mapped[str | None] = mapped_column(String(64))
    created_at: Mapped[datetime]
    revoked_at: Mapped[datetime | None]

    __table_args__ = (
        # Its users are listed and counted in their order.
        Index("ix_authorizations_application_id_user_id", "application_id", "user_id"),
        # Codes that nobody redeemed, which are pruned. The second part keeps redemptions, which
        # look for an unused code by its key, from reading all of them without statistics.
        partial_index(
            "ix_authorizations_unused_code",
            "code_expires_at",
            where="code_used_at IS NULL AND code_expires_at IS NOT NULL",
        ),
    )


class BackchannelSession(Numbered):
    """A sign-in of which an application was told, and of whose end it has to hear."""

    __tablename__ = "backchannel_sessions"

    application_id: Mapped[int] = belongs_to("applications")
    #: NULL once it has ended.
    sign_in_id: Mapped[int | None] = refers_to("sign_ins", index=True)
    user_id: Mapped[int] = belongs_to("users", index=True)
    sid: Mapped[str] = mapped_column(String(64))
    #: When to tell the application, if the sign-in has ended.
    due_at: Mapped[datetime] = mapped_column()
    tries: Mapped[int] = mapped_column(SmallInteger, default=0)

    __table_args__ = (
        UniqueConstraint("application_id", "sid"),
        partial_index("ix_backchannel_sessions_due_at", due_at, where=sign_in_id.is_(None)),
    )


class Consent(Numbered):
    """The scopes that a user has approved for an application before."""

    __tablename__ = "consents"

    user_id: Mapped[int] = belongs_to("users")
    application_id: Mapped[int] = belongs_to("applications")
    scopes: Mapped[str] = mapped_column(Text)
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]

    __table_args__ = (
        UniqueConstraint("user_id", "application_id"),
        Index("ix_consents_application_id_user_id", "application_id", "user_id"),
    )


class AccessToken(Numbered):
    """An access token and the refresh token issued with it (RFC 6749 section 1.4, 1.5)."""

    __tablename__ = "access_tokens"

    #: The grant that this pair was issued from.
    authorization_id: Mapped[int | None] = belongs_to("authorizations", index=True)
    application_id: Mapped[int | None] = belongs_to("applications")
    user_id: Mapped[int] = belongs_to("users", index=True)
    digest: Mapped[bytes] = mapped_column(LargeBinary(32), unique=True)
    refresh_digest: Mapped[bytes | None] = mapped_column(LargeBinary(32), unique=True)
    scopes: Mapped[str] = mapped_column(Text)
    created_at: Mapped[datetime]
    #: Expiry of the access token; the refresh token outlives it. NULL: never.
    expires_at: Mapped[datetime | None]
    #: When the pair was rotated or revoked, or its family was.
    revoked_at: Mapped[datetime | None] = mapped_column(index=True)
    #: When it was refreshed.
    refreshed_at: Mapped[datetime | None]
    #: The IP address that requested it.
    address: Mapped[str | None] = mapped_column(String(64))
    user_agent: Mapped[str | None] = mapped_column(String(255))
    #: Last use of the access token, to the minute.
    last_used_at: Mapped[datetime | None]
    last_used_address: Mapped[str | None] = mapped_column(String(64))
    #: Thumbprint of the DPoP key that the token is bound to (RFC 9449).
    key_thumbprint: Mapped[str | None] = mapped_column(String(64))
    #: It was an administrator's before there was the scope `admin_mode`, and keeps what it had.
    keeps_admin_mode: Mapped[bool] = mapped_column(default=False, server_default=false())
    #: Another one was exchanged for it (RFC 8693).
    is_exchanged: Mapped[bool] = mapped_column(default=False, server_default=false())

    __table_args__ = (
        # Those that are not revoked are counted: of an application that refreshes, they are few.
        Index("ix_access_tokens_application_id_revoked_at", "application_id", "revoked_at"),
        # The users of an application who have no grant.
        partial_index(
            "ix_access_tokens_without_grant",
            "application_id",
            "user_id",
            where="authorization_id IS NULL AND revoked_at IS NULL",
        ),
        # Those that are pruned when they have expired.
        partial_index("ix_access_tokens_alone", "expires_at", where="refresh_digest IS NULL"),
    )


class PersonalAccessToken(Numbered):
    """A token for scripts: of a user, or of the bot of a project or a group."""

    __tablename__ = "personal_access_tokens"

    user_id: Mapped[int] = belongs_to("users", index=True)
    name: Mapped[str] = mapped_column(String(255))
    digest: Mapped[bytes] = mapped_column(LargeBinary(32), unique=True)
    scopes: Mapped[str] = mapped_column(Text)
    created_at: Mapped[datetime]
    #: None: never, which releases before 16.0 allow.
    expires_at: Mapped[datetime | None] = mapped_column(UTCDateTimeOrNever, nullable=False)
    revoked_at: Mapped[datetime | None]
    last_used_at: Mapped[datetime | None]
    last_used_address: Mapped[str | None] = mapped_column(String(64))
    description: Mapped[str] = mapped_column(Text, default="")
    #: The id of the first token of a chain of rotations.
    family_id: Mapped[int | None] = mapped_column(BigInteger, index=True)
    #: When the keyed hash was made; NULL: with the token.
    keyed_at: Mapped[datetime | None]
    name_key: Mapped[str | None] = folded()
    #: The grant of the application that created it, if any; it ends with the grant.
    authorization_id: Mapped[int | None] = belongs_to("authorizations", index=True)
    #: Thumbprint of the DPoP key that the token is bound to (RFC 9449).
    key_thumbprint: Mapped[str | None] = mapped_column(String(64))
    #: It was an administrator's before there was the scope `admin_mode`, and keeps what it had.
    keeps_admin_mode: Mapped[bool] = mapped_column(default=False, server_default=false())

    __table_args__ = (
        # Those that end soon, never, or ended long ago.
        Index("ix_personal_access_tokens_expires_at_id", "expires_at", "id"),
        partial_index(
            "ix_personal_access_tokens_revoked_at", "revoked_at", where="revoked_at IS NOT NULL"
        ),
    )


keep_folded(PersonalAccessToken.name, PersonalAccessToken.name_key)


class TokenRefusal(Numbered):
    """One refused request that named an application; a few of each reason are kept.

    Anybody can send them, since a client_id is public: it is no proof that the application did.
    """

    __tablename__ = "token_refusals"

    application_id: Mapped[int] = belongs_to("applications")
    #: The name of a `domain.oauth.reasons.Reason`.
    reason: Mapped[str] = mapped_column(String(32))
    #: The `grant_type`, or the name of another endpoint, such as that for authorization.
    request: Mapped[str] = mapped_column(String(64))
    #: The error code of RFC 6749 section 4.1.2.1 or 5.2, and the sentence that the client got.
    error: Mapped[str] = mapped_column(String(64))
    description: Mapped[str] = mapped_column(Text)
    refused_at: Mapped[datetime] = mapped_column(index=True)
    #: IP address; null for authorization requests, which come from people's browsers.
    address: Mapped[str | None] = mapped_column(String(64))
    user_agent: Mapped[str | None] = mapped_column(String(255))
    #: What was sent in the place of a registered redirect URI, without what can be a secret.
    redirect_uri: Mapped[str | None] = mapped_column(Text)
    #: The number of later refusals like this one that are counted here instead of stored.
    skipped: Mapped[int] = mapped_column(default=0)

    __table_args__ = (
        Index("ix_token_refusals_application_id_reason_id", "application_id", "reason", "id"),
    )


class DeviceAuthorization(Numbered):
    """A device authorization request, until its code is redeemed or pruned."""

    __tablename__ = "device_authorizations"

    application_id: Mapped[int] = belongs_to("applications", index=True)
    scopes: Mapped[str] = mapped_column(Text)
    device_code_digest: Mapped[bytes] = mapped_column(LargeBinary(32), unique=True)
    user_code_digest: Mapped[bytes] = mapped_column(LargeBinary(32), unique=True)
    created_at: Mapped[datetime]
    expires_at: Mapped[datetime] = mapped_column(index=True)
    #: Seconds between polls; raised by 5 with each early poll (section 3.5).
    interval: Mapped[int] = mapped_column(SmallInteger)
    last_polled_at: Mapped[datetime | None]
    #: The device's IP address and user agent, for the user who approves it.
    address: Mapped[str | None] = mapped_column(String(64))
    user_agent: Mapped[str | None] = mapped_column(String(255))
    #: The user who opened the request; only they can decide it.
    user_id: Mapped[int | None] = belongs_to("users", index=True)
    #: When the approving user last authenticated.
    auth_time: Mapped[datetime | None]
    approved_at: Mapped[datetime | None]
    denied_at: Mapped[datetime | None]
    redeemed_at: Mapped[datetime | None]


class PushedRequest(Numbered):
    """The parameters of a request_uri (RFC 9126)."""

    __tablename__ = "pushed_requests"

    digest: Mapped[bytes] = mapped_column(LargeBinary(32), unique=True)
    application_id: Mapped[int] = belongs_to("applications", index=True)
    parameters: Mapped[dict[str, Any]] = mapped_column(JSON)
    created_at: Mapped[datetime]
    expires_at: Mapped[datetime] = mapped_column(index=True)


class SeenProof(Base):
    """A used DPoP proof, which is not accepted again (RFC 9449 section 11.1)."""

    __tablename__ = "seen_proofs"

    #: Keyed hash of the key's thumbprint and the proof's jti.
    digest: Mapped[bytes] = mapped_column(LargeBinary(32), primary_key=True)
    expires_at: Mapped[datetime] = mapped_column(index=True)


class SigningKey(Numbered):
    """An RSA key pair, published from before its first to after its last signature."""

    __tablename__ = "signing_keys"

    #: JWK thumbprint (RFC 7638).
    kid: Mapped[str] = mapped_column(String(64), unique=True)
    #: The published public JWK (RFC 7517).
    public_jwk: Mapped[dict[str, str]] = mapped_column(JSON)
    #: The private JWK, encrypted.
    private_ciphertext: Mapped[str] = mapped_column(Text)
    created_at: Mapped[datetime]
    #: When a newer key took over; it stays published until its ID tokens have expired.
    retired_at: Mapped[datetime | None]
