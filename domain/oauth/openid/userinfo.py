"""Claims about a user by scope (OpenID Connect Core section 5)."""

from collections.abc import Sequence
from datetime import date

from sqlalchemy import Date, bindparam, or_, select, true
from sqlalchemy.orm import aliased

from domain.accounts.profiles import PROFILE, Profile, avatar_url, profile_in, profile_path
from domain.core.database.statements import KeptConnection, Row
from domain.oauth.openid.id_tokens import subject
from domain.oauth.presented_tokens.bearer import Bearer
from domain.projects.visibility_sql import is_in_group
from models import Group, Member, User

#: Claims of each scope (section 5.4), in display order.
CLAIMS = {
    "openid": ("sub", "groups"),
    "profile": ("name", "nickname", "preferred_username", "profile", "picture", "zoneinfo"),
    "email": ("email", "email_verified"),
}

#: Maximum length of the `groups` claim of an ID token, in characters. ID tokens are sent in URLs
#: (`id_token_hint`), which servers and browsers limit to about eight thousand characters.
MOST_GROUP_CHARACTERS = 2_000

_OWN = aliased(Group)
#: Groups that the user is a member of, directly or through a parent group.
_GROUPS = (
    select(Group.path)
    .distinct()
    .join(_OWN, is_in_group(Group, _OWN))
    .join(Member, Member.group_id == _OWN.id)
    .where(
        Member.user_id == bindparam("user_id"),
        or_(Member.expires_at.is_(None), Member.expires_at > bindparam("today", type_=Date)),
        Group.deleted_at.is_(None),
        Group.owner_id.is_(None),
    )
    .order_by(Group.path)
)
_OF_USER = _GROUPS.order_by(None).subquery()
#: Time zone of users who have not selected one; it does not indicate where they are.
_UNCHOSEN_ZONE = "UTC"
#: A user and their time zone, with a row for each of their groups, or a single row without a group.
_PERSON = (
    select(*PROFILE, User.time_zone, _OF_USER.c.path)
    .outerjoin(_OF_USER, true())
    .where(User.id == bindparam("user_id"))
    .order_by(_OF_USER.c.path)
)


def userinfo(
    bearer: Bearer, *, issuer: str, connection: KeptConnection, today: date
) -> dict[str, object]:
    """Return the claims about the user that the token's scopes permit.

    Raise InsufficientScopeError if the token does not have the scope openid.
    """
    bearer.require("openid")
    rows = connection.look_up(_PERSON, {"user_id": bearer.user_id, "today": today})
    return _opened(bearer.scopes, _claims(bearer.profile, rows, issuer))


def claims_of(
    user_id: int, scopes: Sequence[str], *, issuer: str, connection: KeptConnection, today: date
) -> dict[str, object]:
    """Return the claims about a user for an ID token, as in userinfo (section 5.4).

    Existing clients read only the ID token. If the groups exceed `MOST_GROUP_CHARACTERS`, the
    `groups` claim is omitted, since a partial list would look complete.
    """
    rows = connection.look_up(_PERSON, {"user_id": user_id, "today": today})
    claims = _opened(scopes, _claims(profile_in(rows[0]), rows, issuer))
    if sum(map(len, _groups_in(rows))) > MOST_GROUP_CHARACTERS:
        claims.pop("groups", None)
    return claims


def _opened(scopes: Sequence[str], known: dict[str, object]) -> dict[str, object]:
    """Return the known claims of the scopes; unknown values are omitted."""
    opened = (name for scope, names in CLAIMS.items() if scope in scopes for name in names)
    return {name: known[name] for name in opened if known[name] is not None}


def _groups_in(rows: Sequence[Row]) -> list[str]:
    return [path for *_, path in rows if path is not None]


def _zone_in(rows: Sequence[Row]) -> str | None:
    zone = rows[0][len(PROFILE)] if rows else _UNCHOSEN_ZONE
    return None if zone == _UNCHOSEN_ZONE else zone


def _claims(profile: Profile, rows: Sequence[Row], issuer: str) -> dict[str, object]:
    return {
        "sub": subject(profile.id),
        "groups": _groups_in(rows),
        "name": profile.name,
        "nickname": profile.username,
        "preferred_username": profile.username,
        "profile": f"{issuer}{profile_path(profile.username)}",
        "picture": avatar_url(profile, issuer),
        "zoneinfo": _zone_in(rows),
        "email": profile.email,
        # True only for confirmed addresses. Otherwise users could impersonate others at an
        # application that identifies users by email address.
        "email_verified": profile.email_confirmed_at is not None,
    }
