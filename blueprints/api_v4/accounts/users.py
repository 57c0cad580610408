"""/api/v4/user, the user of a token, and /api/v4/users."""

from dataclasses import replace

from flask import Blueprint, Response

from blueprints.api_v4.projects.projects import present_projects
from domain.accounts import administration as domain
from domain.accounts import directory
from domain.accounts.administration import get_account
from domain.accounts.directory import PublicUser, look_up_account
from domain.accounts.users import Profile, UserView, change_profile, find_user, get_user
from domain.audit.events import Event, EventKind
from domain.database.locks import release_locks
from domain.database.paging import ListPart, parse_id
from domain.errors import ForbiddenError, InvalidError, NotFoundError, QueryError
from domain.oauth.presented_tokens.bearer import Bearer
from domain.projects.listing import list_projects
from domain.projects.people import is_known
from domain.projects.views import Viewer
from domain.releases.schedule import BY_ID
from domain.types.base import Done, Found
from web.access.api_limits import Family
from web.admin.personal_data import erase, exported
from web.api.operations import operation, ready_operation
from web.api.schemas.accounts.users import (
    Account,
    AccountBody,
    AccountChangeBody,
    CurrentUser,
    ErasureBody,
    NameBody,
    NewAccount,
    PersonalData,
    User,
    UserQuery,
)
from web.api.schemas.projects.projects import Project, ProjectQuery
from web.extensions import db
from web.http.audit_events import record_event
from web.http.json_responses import json_response
from web.releases.requested import requested_release
from web.services import letterhead, now, services, settings
from web.settings.password_rules import password_rules

users = Blueprint("users", __name__)
#: From this release on the list of users has no numbered pages.
_OFFSET_PAGINATION = BY_ID["users-offset-pagination"]


@users.get("/user")
@ready_operation("users.current", returns=CurrentUser)
def current(bearer: Bearer) -> dict[str, object]:
    """Show the user of the token."""
    return bearer.profile.as_json(settings().base_url)


@users.put("/user")
@operation("users.rename_current", body=NameBody, returns=CurrentUser)
def rename_current(bearer: Bearer, body: NameBody) -> Response:
    """Change the name of the user of the token."""
    if bearer.is_bot:
        message = "A bot has the name of its access token."
        raise ForbiddenError(message)
    change_profile(bearer.user_id, Profile(name=body.name), session=db.session())
    return json_response(replace(bearer.profile, name=body.name).as_json(settings().base_url))


@users.get("/users")
@operation("users.index", query=UserQuery, returns=Account | User, limit=Family.USERS)
def index(viewer: Viewer, query: UserQuery) -> Found[User]:
    """List users: people with an active account, or all accounts for administrators."""
    part, session, base_url = _part(query), db.session(), settings().base_url
    if viewer.is_admin:
        accounts = directory.list_accounts(query.wanted, part, session=session)
        return Found.of(accounts, lambda each: Account.of_account(each, base_url=base_url))
    if query.is_for_administrators:
        message = "admins, two_factor and without_projects are for administrators of the instance."
        raise ForbiddenError(message)
    found = directory.list_public_users(query.wanted, part, session=session)
    return Found.of(found, lambda each: User.of(each, base_url=base_url))


def _part(query: UserQuery) -> ListPart:
    """Return the part that is asked for; without numbered pages, all of them are by key."""
    is_by_key = _OFFSET_PAGINATION.applies_in(requested_release())
    if is_by_key and query.order_by != "id":
        message = "order_by can only be id: this list has no numbered pages any more."
        raise QueryError(message, field="order_by")
    return replace(query.part, is_by_key=True) if is_by_key else query.part


@users.get("/users/<int:user_id>")
@operation("users.show", returns=Account | User, limit=Family.USER)
def show(viewer: Viewer, user_id: int) -> User:
    """Show a user."""
    if viewer.is_admin:
        return _account(user_id)
    return User.of(_visible(user_id, viewer), base_url=settings().base_url)


@users.get("/users/<string:user>/projects")
@operation("users.projects", query=ProjectQuery, returns=Project, limit=Family.PROJECTS)
def projects(viewer: Viewer, query: ProjectQuery, user: str) -> Found[Project]:
    """List the projects that a user owns, as far as the caller is a member of them.

    The user is an id or a user name. Administrators see all of them.
    """
    session = db.session()
    owner_id = _id_of(user)
    if viewer.is_admin:
        get_account(owner_id, session=session)
    else:
        _visible(owner_id, viewer)
    found = list_projects(query.wanted(owner_id=owner_id), query.part, viewer, session=session)
    return present_projects(found, query)


def _id_of(user: str) -> int:
    """Return the id of a user who is given by id or user name; 0 is nobody's."""
    number = parse_id(user)
    if number is not None or "@" in user:  # an address would tell whose it is
        return number or 0
    found = find_user(user, session=db.session())
    return found.id if found else 0


def _visible(user_id: int, viewer: Viewer) -> PublicUser:
    """Return a user whom the viewer may see, or raise NotFoundError."""
    session = db.session()
    found = directory.find_public_user(user_id, session=session)
    if found is None and is_known(user_id, viewer, session=session):
        found = directory.get_public_user(user_id, session=session)
    if found is None:
        message = "User not found."
        raise NotFoundError(message)
    return found


@users.post("/users")
@operation("users.create", body=AccountBody, returns=NewAccount | Account, status=201)
def create(body: AccountBody) -> Account:
    """Create a user, with a given password or a generated one that only this response contains."""
    if (body.password is None) != body.force_random_password:
        message = "Send a password, or force_random_password=true."
        raise InvalidError(message, field="password")
    release_locks(db.session())  # to hash a password takes a while
    return _created(body) if body.password is None else _created_with(body.password, body)


def _created(body: AccountBody) -> Account:
    made = domain.create_account(
        body.details,
        letterhead(),
        session=db.session(),
        now=now(),
        rules=password_rules(settings()),
    )
    _record(EventKind.USER_CREATED, made.user, administrator=body.admin)
    return NewAccount.with_password(
        look_up_account(made.user.id, session=db.session(), now=now()),
        made.password,
        base_url=settings().base_url,
    )


def _created_with(password: str, body: AccountBody) -> Account:
    try:
        user = domain.create_account_with(
            password,
            body.details,
            letterhead(),
            session=db.session(),
            now=now(),
            rules=password_rules(settings()),
        )
    except InvalidError as error:
        if error.field == "new_password":  # the name of the field on pages
            raise InvalidError(str(error), field="password") from error
        raise
    _record(EventKind.USER_CREATED, user, administrator=body.admin)
    return _account(user.id)


@users.put("/users/<int:user_id>")
@operation("users.change", body=AccountChangeBody, returns=Account)
def change(bearer: Bearer, user_id: int, body: AccountChangeBody) -> Account:
    """Change the names, the e-mail address, the time zone or the role of a user."""
    session = db.session()
    before = get_account(user_id, session=session).username
    changed = domain.change_account(
        user_id, body.change, letterhead(), by=bearer.user_id, session=session, now=now()
    )
    user = get_account(user_id, session=session)
    if changed:
        more: dict[str, object] = {"before": before} if "username" in changed else {}
        more |= {"administrator": user.is_admin} if "is_admin" in changed else {}
        _record(EventKind.USER_CHANGED, user, changed=", ".join(changed), **more)
    return _account(user_id)


@users.post("/users/<int:user_id>/block")
@operation("users.block", returns=Done, status=201)
def block(bearer: Bearer, user_id: int) -> Done:
    """Lock an account and sign it out everywhere."""
    user = domain.lock(user_id, by=bearer.user_id, session=db.session())
    _record(EventKind.USER_LOCKED, user)
    return Done(True)  # noqa: FBT003 - what clients wait for


@users.post("/users/<int:user_id>/unblock")
@operation("users.unblock", returns=Done, status=201)
def unblock(user_id: int) -> Done:
    """Unlock an account."""
    user = domain.unlock(user_id, session=db.session(), keyring=services().keyring)
    _record(EventKind.USER_UNLOCKED, user)
    return Done(True)  # noqa: FBT003 - what clients wait for


@users.get("/users/<int:user_id>/export")
@operation("users.export", returns=PersonalData, limit=Family.USER).but(
    writes=True  # an audit event
)
def export(bearer: Bearer, user_id: int) -> Response:
    """Export the personal data of the caller, or of any user for administrators."""
    if user_id != bearer.user_id and not bearer.is_admin:
        message = "User not found."
        raise NotFoundError(message)
    answer = json_response(exported(get_account(user_id, session=db.session())))
    answer.headers["Cache-Control"] = "no-store"
    return answer


@users.delete("/users/<int:user_id>")
@operation("users.delete", body=ErasureBody)
def delete(bearer: Bearer, user_id: int, body: ErasureBody) -> None:
    """Delete a user; what others need is kept under a pseudonym."""
    session = db.session()
    heir = body.applications_to
    erase(
        get_account(user_id, session=session),
        by=bearer.user_id,
        heir=get_user(heir, session=session) if heir else None,
        may_delete_applications=body.delete_applications,
    )


def _account(user_id: int) -> Account:
    found = look_up_account(user_id, session=db.session(), now=now())
    return Account.of_account(found, base_url=settings().base_url)


def _record(kind: EventKind, user: UserView, **details: object) -> None:
    record_event(Event(kind=kind, user_id=user.id, subject=user.username, details=details))
