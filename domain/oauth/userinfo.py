"""What an application may learn of a user: claims by scope (OpenID Connect Core section 5)."""

from typing import Any

from sqlalchemy import bindparam, func, or_, select
from sqlalchemy.orm import aliased

from domain.accounts.profiles import Profile, profile_path
from domain.hot import HotConnection
from domain.oauth.bearer import Bearer
from domain.oauth.id_tokens import subject
from domain.oauth.pictures import picture_path
from models import Group, Member

#: The claims of each scope (section 5.4), in the order in which they are shown.
CLAIMS = {
    "openid": ("sub", "groups"),
    "profile": ("name", "nickname", "preferred_username", "profile", "picture"),
    "email": ("email", "email_verified"),
}

_OWN = aliased(Group)
#: Every group that the user is a member of, itself or by a group above it.
_GROUPS = (
    select(Group.path)
    .distinct()
    .join(
        _OWN,
        or_(
            Group.id == _OWN.id,
            func.substr(Group.path, 1, func.length(_OWN.path) + 1) == _OWN.path + "/",
        ),
    )
    .join(Member, Member.group_id == _OWN.id)
    .where(Member.user_id == bindparam("user_id"))
    .order_by(Group.path)
)


def userinfo(bearer: Bearer, *, issuer: str, hot: HotConnection) -> dict[str, Any]:
    """Return the claims that the token's scopes open; raise InsufficientScopeError."""
    bearer.require("openid")
    known = _claims(bearer.profile, issuer)
    known["groups"] = [row.path for row in hot.all(_GROUPS, {"user_id": bearer.user_id})]
    return {
        name: known[name]
        for scope, names in CLAIMS.items()
        if scope in bearer.scopes
        for name in names
    }


def _claims(profile: Profile, issuer: str) -> dict[str, Any]:
    return {
        "sub": subject(profile.id),
        "name": profile.name,
        "nickname": profile.username,
        "preferred_username": profile.username,
        "profile": f"{issuer}{profile_path(profile.username)}",
        "picture": f"{issuer}{picture_path(profile.name or profile.username, profile.id)}",
        "email": profile.email,
        # Nobody has proven yet that mail to this address reaches the user: people change it
        # themselves, and an application that believed it would let them be somebody else.
        "email_verified": False,
    }
