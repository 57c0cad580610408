"""The keys that sign ID tokens, as pages and commands show and rotate them."""

from pydantic import Field

from domain.oauth.openid.keys import USUAL_BITS, KeyRotation
from domain.types.base import Body, Resource, Time


class Key(Resource):
    """A published key."""

    kid: str
    created_at: Time
    #: When it ceases to sign; null while nothing takes its place.
    retired_at: Time | None


class Keys(Resource):
    """The published keys, the oldest first."""

    keys: list[Key]


class NewKey(Keys):
    """A new key, with those that are published from now on."""

    kid: str


class NewKeyBody(Body):
    """How a new key replaces the old ones."""

    handover: KeyRotation = Field(
        default=KeyRotation.AFTER_NOTICE,
        description="When the new key starts signing, and whether the old keys are kept.",
    )
    bits: int = Field(default=USUAL_BITS, description="Size of the key.")
