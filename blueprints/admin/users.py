"""/admin/users: account administration."""

from dataclasses import dataclass

from flask import Blueprint, flash, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue

from domain.accounts import administration as domain
from domain.accounts.administration import get_account
from domain.accounts.directory import (
    GROUPS,
    AccountCounts,
    AccountFilter,
    count_accounts,
    look_up_account,
    page_of_accounts,
)
from domain.accounts.email_addresses import confirm_waiting, vouch, vouch_for_all
from domain.accounts.factors.second_factors import factors_of
from domain.accounts.factors.second_factors import remove_second_factors as forget_factors
from domain.accounts.users import UserView
from domain.audit.events import Event, EventKind
from domain.database.list_queries import one_of, words
from domain.database.locks import release_locks
from domain.errors import InvalidError
from domain.oauth.clients.views import list_own
from domain.oauth.consent.authorized_applications import list_authorized
from domain.oauth.personal_tokens.lists import TokenFilter, count_tokens
from domain.projects.overview import my_projects
from domain.projects.views import Viewer
from forms.account import AccountChangeForm, AccountForm
from web.access.marks import administrator, get_current_user
from web.extensions import db
from web.http.audit_events import record_event
from web.pages.links import page_links
from web.pages.list_query import CURSORS, asked_slice, list_query
from web.sealing.one_time_secrets import keep_one_time_secret, take_one_time_secret
from web.server.bootstrap import forget_first_password
from web.services import letterhead, now, services, settings
from web.settings.password_rules import hash_cost, password_rules
from web.signing_in.account_access import end_access

users = Blueprint("users", __name__, url_prefix="/users")
#: What can become of personal access tokens when a password is reset.
_TOKENS = frozenset({"revoke", "keep"})
_PASSWORD = "user password"  # noqa: S105 - a name
_MOST_PROJECTS = 10


@dataclass(frozen=True, kw_only=True)
class Tab:
    """A tab of the account list."""

    key: str
    label: str
    count: int
    href: str
    current: bool


@users.get("")
@administrator
def index() -> ResponseReturnValue:
    """List accounts, newest first."""
    given = list_query("group", "search", *CURSORS)
    wanted = AccountFilter(
        group=one_of(given, "group", GROUPS, "people"), search=words(given, "search")
    )
    counts = count_accounts(session=db.session())
    return render_template(
        "admin/users/index.html",
        page=page_links(page_of_accounts(wanted, asked_slice(), session=db.session())),
        tabs=_tabs(wanted, counts),
        counts=counts,
        query=wanted.search,
        sends_mail=bool(settings().mail_url),
    )


def _tabs(wanted: AccountFilter, counts: AccountCounts) -> tuple[Tab, ...]:
    return tuple(
        Tab(
            key=key,
            label=key.capitalize(),
            count=getattr(counts, key),
            href=url_for("admin.users.index", group=key, search=wanted.search or None),
            current=key == wanted.group,
        )
        for key in GROUPS
    )


@users.route("/new", methods=["GET", "POST"])
@administrator
def new() -> ResponseReturnValue:
    """Create an account and show its password."""
    form = AccountForm()
    if not form.validate_on_submit():
        return _form_page(form)
    release_locks(db.session())  # to hash a password takes a while
    try:
        made = domain.create_account(
            form.details,
            letterhead(),
            session=db.session(),
            now=now(),
            rules=password_rules(settings()),
        )
    except InvalidError as error:
        # The refused statement left the transaction unusable.
        db.session.rollback()
        form.object_to(error.field, str(error))
        return _form_page(form)
    user = made.user
    keep_one_time_secret(_PASSWORD, user.id, made.password)
    sentence = f"User {user.username} created."
    return _done(EventKind.USER_CREATED, user, sentence, administrator=user.is_admin)


@users.get("/<int:user_id>")
@administrator
def show(user_id: int) -> ResponseReturnValue:
    """Show an account, with its password right after its creation or reset."""
    session, moment = db.session(), now()
    page = render_template(
        "admin/users/show.html",
        account=look_up_account(user_id, session=session, now=moment),
        is_you=user_id == get_current_user().id,
        password=take_one_time_secret(_PASSWORD, user_id),
        factors=factors_of(user_id, session=session),
        applications=list_own(user_id, session=session, now=moment),
        authorized=list_authorized(user_id, session=session, now=moment),
        token_count=_count_tokens(user_id),
        sends_mail=bool(settings().mail_url),
        mine=my_projects(
            Viewer(user_id=user_id, today=moment.date()), most=_MOST_PROJECTS, session=session
        ),
    )
    return page, 200, {"Cache-Control": "no-store"}


@users.route("/<int:user_id>/edit", methods=["GET", "POST"])
@administrator
def edit(user_id: int) -> ResponseReturnValue:
    """Change the names and the e-mail address of an account."""
    session, user = db.session(), get_account(user_id, session=db.session())
    form = AccountChangeForm.of(user)
    if not form.validate_on_submit():
        return _edit_page(form, user)
    by = get_current_user().id
    try:
        changed = domain.change_account(
            user_id, form.change, letterhead(), by=by, session=session, now=now()
        )
    except InvalidError as error:
        db.session.rollback()
        form.object_to(error.field, str(error))
        return _edit_page(form, user)
    if not changed:
        flash("Nothing was changed.", "info")
        return _back_to(user_id)
    after = get_account(user_id, session=session)
    details = {"before": user.username} if "username" in changed else {}
    words = f"Account {after.username} saved."
    return _done(EventKind.USER_CHANGED, after, words, changed=", ".join(changed), **details)


@users.post("/<int:user_id>/verify_address")
@administrator
def verify_address(user_id: int) -> ResponseReturnValue:
    """Vouch for the e-mail address of an account."""
    user = get_account(user_id, session=db.session())
    if not vouch(user_id, session=db.session(), now=now()):
        flash("The address is verified already.", "info")
        return _back_to(user_id)
    return _done(EventKind.EMAIL_CONFIRMED, user, f"{user.email} is marked as verified.")


@users.post("/verify_addresses")
@administrator
def verify_addresses() -> ResponseReturnValue:
    """Vouch for the e-mail addresses of all accounts."""
    done = vouch_for_all(session=db.session(), now=now())
    if done:
        record_event(Event(kind=EventKind.EMAIL_CONFIRMED, details={"accounts": done}))
    flash(f"E-mail addresses marked as verified: {done}.")
    return redirect(url_for("admin.users.index"))


@users.post("/<int:user_id>/confirm_address")
@administrator
def confirm_address(user_id: int) -> ResponseReturnValue:
    """Let an account have the new e-mail address that its user asked for."""
    user = get_account(user_id, session=db.session())
    email = request.form.get("email", "")
    done = confirm_waiting(user_id, email, letterhead(), session=db.session(), now=now())
    changed = {"changed": "e-mail address"} if done.is_new else {}
    return _done(EventKind.EMAIL_CONFIRMED, user, f"{done.email} is confirmed.", **changed)


@users.post("/<int:user_id>/lock")
@administrator
def lock(user_id: int) -> ResponseReturnValue:
    """Lock an account and sign it out everywhere."""
    user = domain.lock(user_id, by=get_current_user().id, session=db.session())
    sentence = f"{user.username} is locked and signed out everywhere."
    return _done(EventKind.USER_LOCKED, user, sentence)


@users.post("/<int:user_id>/unlock")
@administrator
def unlock(user_id: int) -> ResponseReturnValue:
    """Unlock an account."""
    user = domain.unlock(user_id, session=db.session(), keyring=services().keyring)
    return _done(EventKind.USER_UNLOCKED, user, f"{user.username} is unlocked.")


@users.post("/<int:user_id>/reset_password")
@administrator
def reset_password(user_id: int) -> ResponseReturnValue:
    """Reset a password to a random one and show it; the form asks what becomes of the tokens."""
    has_answer = request.form.get("tokens") in _TOKENS or not _count_tokens(user_id)
    if not has_answer and user_id != get_current_user().id:
        flash("Choose whether the personal access tokens are revoked or kept.", "error")
        return _back_to(user_id)
    issued = domain.reset_password(
        user_id,
        by=get_current_user().id,
        cost=hash_cost(settings()),
        session=db.session(),
        keyring=services().keyring,
        now=now(),
    )
    ended = end_access(
        user_id,
        applications="keep_applications" not in request.form,
        tokens=request.form.get("tokens") == "revoke",
    )
    forget_first_password(issued.user.username)
    keep_one_time_secret(_PASSWORD, user_id, issued.password)
    sentence = f"{issued.user.username} has a new password and is signed out everywhere."
    return _done(EventKind.PASSWORD_RESET, issued.user, sentence, **ended)


@users.post("/<int:user_id>/remove_second_factors")
@administrator
def remove_second_factors(user_id: int) -> ResponseReturnValue:
    """Remove all second factors of an account whose owner has lost them."""
    user = get_account(user_id, session=db.session())
    if forget_factors(user_id, session=db.session()):
        record_event(
            Event(kind=EventKind.SECOND_FACTOR_REMOVED, user_id=user_id, subject="all of them")
        )
        flash(f"Two-factor authentication is off for {user.username}.")
    return _back_to(user_id)


@users.post("/<int:user_id>/make_administrator")
@administrator
def make_administrator(user_id: int) -> ResponseReturnValue:
    """Make a user an administrator."""
    user = domain.make_administrator(user_id, session=db.session())
    sentence = f"{user.username} is now an administrator."
    return _done(EventKind.USER_CHANGED, user, sentence, administrator=True)


@users.post("/<int:user_id>/unmake_administrator")
@administrator
def unmake_administrator(user_id: int) -> ResponseReturnValue:
    """Revoke the administrator role of a user."""
    user = domain.unmake_administrator(user_id, by=get_current_user().id, session=db.session())
    sentence = f"{user.username} is no longer an administrator."
    return _done(EventKind.USER_CHANGED, user, sentence, administrator=False)


def _count_tokens(user_id: int) -> int:
    wanted = TokenFilter(owner_id=user_id, is_active=True)
    return count_tokens(wanted, session=db.session(), now=now())


def _done(kind: EventKind, user: UserView, sentence: str, **details: object) -> ResponseReturnValue:
    """Record the event of a change, and say on the page of the account that it is done."""
    record_event(Event(kind=kind, user_id=user.id, subject=user.username, details=details))
    flash(sentence)
    return _back_to(user.id)


def _back_to(user_id: int) -> ResponseReturnValue:
    return redirect(url_for("admin.users.show", user_id=user_id))


def _edit_page(form: AccountChangeForm, user: UserView) -> ResponseReturnValue:
    is_you = user.id == get_current_user().id
    page = render_template(
        "admin/users/edit.html",
        form=form,
        account=user,
        is_you=is_you,
        sends_mail=bool(settings().mail_url),
    )
    return page, 422 if form.errors else 200


def _form_page(form: AccountForm) -> ResponseReturnValue:
    sends_mail = bool(settings().mail_url)
    page = render_template("admin/users/new.html", form=form, sends_mail=sends_mail)
    return page, 422 if form.errors else 200
