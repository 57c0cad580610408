"""Claims about a user by scope (OpenID Connect Core section 5)."""

from collections.abc import Sequence
from datetime import date

from sqlalchemy import Date, bindparam, or_, select, true
from sqlalchemy.orm import aliased

from domain.accounts.profiles import (
    PROFILE_COLUMNS,
    Profile,
    build_avatar_url,
    build_profile,
    build_profile_path,
)
from domain.core.database.statements import Row, StatementConnection
from domain.oauth.openid.id_tokens import get_subject
from domain.oauth.token_authentication.bearer import Bearer
from domain.projects.visibility_sql import is_group_or_descendant
from models import Group, Member, User

#: Claims for each scope (section 5.4), in display order.
CLAIMS_BY_SCOPE = {
    "openid": ("sub", "groups"),
    "profile": ("name", "nickname", "preferred_username", "profile", "picture", "zoneinfo"),
    "email": ("email", "email_verified"),
}

#: Maximum length of the `groups` claim in an ID token, in characters. ID tokens are sent in URLs
#: (`id_token_hint`), which servers and browsers limit to about eight thousand characters.
MAX_GROUPS_CLAIM_LENGTH = 2_000

_MEMBER_GROUP = aliased(Group)
#: Query for the groups that the user is a member of, directly or through a parent group.
_GROUPS_QUERY = (
    select(Group.path)
    .distinct()
    .join(_MEMBER_GROUP, is_group_or_descendant(Group, _MEMBER_GROUP))
    .join(Member, Member.group_id == _MEMBER_GROUP.id)
    .where(
        Member.user_id == bindparam("user_id"),
        or_(Member.expires_at.is_(None), Member.expires_at > bindparam("today", type_=Date)),
        Group.deleted_at.is_(None),
        Group.owner_id.is_(None),
    )
    .order_by(Group.path)
)
_GROUPS_SUBQUERY = _GROUPS_QUERY.order_by(None).subquery()
#: Default time zone of users who have not selected a time zone. It is not sent as a claim.
_UNCHOSEN_ZONE = "UTC"
#: Query for a user with their time zone. It returns a row for each of the user's groups, or a
#: single row if the user has no groups.
_USER_WITH_GROUPS_QUERY = (
    select(*PROFILE_COLUMNS, User.time_zone, _GROUPS_SUBQUERY.c.path)
    .outerjoin(_GROUPS_SUBQUERY, true())
    .where(User.id == bindparam("user_id"))
    .order_by(_GROUPS_SUBQUERY.c.path)
)


def build_userinfo(
    bearer: Bearer, *, issuer: str, connection: StatementConnection, today: date
) -> dict[str, object]:
    """Return the claims about the user that the token's scopes permit.

    Raise InsufficientScopeError if the token does not have the `openid` scope.
    """
    bearer.require_any_scope("openid")
    rows = connection.fetch_rows(
        _USER_WITH_GROUPS_QUERY, {"user_id": bearer.user_id, "today": today}
    )
    return _filter_claims(bearer.scopes, _build_claims(bearer.profile, rows, issuer))


def build_id_token_claims(
    user_id: int,
    scopes: Sequence[str],
    *,
    issuer: str,
    connection: StatementConnection,
    today: date,
) -> dict[str, object]:
    """Return the claims about a user for an ID token, as in userinfo (section 5.4).

    Existing clients read only the ID token. If the groups exceed `MAX_GROUPS_CLAIM_LENGTH`, the
    `groups` claim is omitted, since a partial list would look complete.
    """
    rows = connection.fetch_rows(_USER_WITH_GROUPS_QUERY, {"user_id": user_id, "today": today})
    claims = _filter_claims(scopes, _build_claims(build_profile(rows[0]), rows, issuer))
    if sum(map(len, _list_group_paths(rows))) > MAX_GROUPS_CLAIM_LENGTH:
        claims.pop("groups", None)
    return claims


def _filter_claims(scopes: Sequence[str], known: dict[str, object]) -> dict[str, object]:
    """Return the claims that the scopes permit, without claims whose value is None."""
    opened = (name for scope, names in CLAIMS_BY_SCOPE.items() if scope in scopes for name in names)
    return {name: known[name] for name in opened if known[name] is not None}


def _list_group_paths(rows: Sequence[Row]) -> list[str]:
    return [path for *_, path in rows if path is not None]


def _get_chosen_zone(rows: Sequence[Row]) -> str | None:
    zone = rows[0][len(PROFILE_COLUMNS)] if rows else _UNCHOSEN_ZONE
    return None if zone == _UNCHOSEN_ZONE else zone


def _build_claims(profile: Profile, rows: Sequence[Row], issuer: str) -> dict[str, object]:
    return {
        "sub": get_subject(profile.id),
        "groups": _list_group_paths(rows),
        "name": profile.name,
        "nickname": profile.username,
        "preferred_username": profile.username,
        "profile": f"{issuer}{build_profile_path(profile.username)}",
        "picture": build_avatar_url(profile, issuer),
        "zoneinfo": _get_chosen_zone(rows),
        "email": profile.email,
        # True only for confirmed addresses. Otherwise users could impersonate others at an
        # application that identifies users by email address.
        "email_verified": profile.email_confirmed_at is not None,
    }
