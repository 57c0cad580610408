"""The /admin/users page: account administration."""

from flask import Blueprint, flash, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue

from domain.accounts.account_lists import (
    ACCOUNT_GROUPS,
    AccountCounts,
    AccountFilter,
    count_accounts,
    fetch_account_page,
)
from domain.accounts.administration import get_account
from domain.accounts.email_addresses import confirm_address_as_administrator, confirm_all_addresses
from domain.accounts.factors.second_factors import get_second_factors
from domain.accounts.identity_providers.identities import disconnect_user, list_provider_connections
from domain.accounts.lifecycle import actions, sign_up
from domain.accounts.personal_data.erasure import count_applications, count_own_projects
from domain.accounts.types import (
    Account,
    AccountChangeBody,
    ErasureResult,
    NewAccount,
    PasswordResetBody,
)
from domain.core.database.pagination import get_choice, get_search_text
from domain.core.errors import InvalidError, NotFoundError
from domain.oauth.clients.application_lists import list_own_applications
from domain.oauth.consent.authorized_applications import list_authorized_applications
from domain.oauth.personal_tokens.token_lists import TokenFilter, count_tokens
from domain.projects.my_projects import list_my_projects
from domain.projects.views import Viewer
from forms.account import AccountChangeForm, AccountDeletionForm, AccountForm
from web.access.decorators import administrator_required, get_current_user
from web.admin.personal_data import build_personal_data_response
from web.extensions import db
from web.http.unit_of_work import get_unit_of_work
from web.pages.form_pages import render_form_page
from web.pages.list_query import (
    CURSOR_PARAMETERS,
    Tab,
    build_page_links,
    get_list_query,
    get_requested_keyset_range,
)
from web.sealing.sealed_values import store_one_time_secret, take_one_time_secret
from web.services import get_current_time, get_settings

users = Blueprint("users", __name__, url_prefix="/users")
#: Options for personal access tokens when a password is reset.
_TOKEN_CHOICES = frozenset({"revoke", "keep"})
_PASSWORD_NAME = "user password"  # noqa: S105 - a name
_MAX_PROJECTS = 10


@users.get("")
@administrator_required
def index() -> ResponseReturnValue:
    """List accounts, newest first."""
    given = get_list_query("group", "search", *CURSOR_PARAMETERS)
    wanted = AccountFilter(
        group=get_choice(given, "group", ACCOUNT_GROUPS, "people"),
        search=get_search_text(given, "search"),
    )
    counts = count_accounts(session=db.session())
    return render_template(
        "admin/users/index.html",
        page=build_page_links(
            fetch_account_page(
                wanted,
                get_requested_keyset_range(),
                session=db.session(),
                base_url=get_settings().base_url,
            )
        ),
        tabs=_build_tabs(wanted, counts),
        counts=counts,
        query=wanted.search,
        sends_mail=bool(get_settings().mail_url),
    )


def _build_tabs(account_filter: AccountFilter, counts: AccountCounts) -> tuple[Tab, ...]:
    return tuple(
        Tab(
            key=key,
            count=getattr(counts, key),
            href=url_for("admin.users.index", group=key, search=account_filter.search or None),
            current=key == account_filter.group,
        )
        for key in ACCOUNT_GROUPS
    )


@users.route("/new", methods=["GET", "POST"])
@administrator_required
def new() -> ResponseReturnValue:
    """Create an account and show its password."""
    form = AccountForm()
    made = form.run_if_valid(lambda: actions.create_user(get_unit_of_work(), form.entered_account))
    if isinstance(made, NewAccount):
        store_one_time_secret(_PASSWORD_NAME, made.id, made.generated_password)
        return _flash_and_redirect(made, f"User {made.username} created.")
    sends_mail = bool(get_settings().mail_url)
    return render_form_page("admin/users/new.html", form, sends_mail=sends_mail)


@users.get("/<int:user_id>")
@administrator_required
def show(user_id: int) -> ResponseReturnValue:
    """Show an account, with its password if the password was just created or reset."""
    session, moment = db.session(), get_current_time()
    page = render_template(
        "admin/users/show.html",
        account=actions.show_account(get_unit_of_work(), user_id),
        is_you=user_id == get_current_user().id,
        password=take_one_time_secret(_PASSWORD_NAME, user_id),
        factors=get_second_factors(user_id, session=session),
        connections=list_provider_connections(user_id, session, possible=False),
        applications=list_own_applications(user_id, session=session, now=moment),
        authorized=list_authorized_applications(user_id, session=session, now=moment),
        token_count=_count_tokens(user_id),
        sends_mail=bool(get_settings().mail_url),
        mine=list_my_projects(
            Viewer(user_id=user_id, today=moment.date()), maximum=_MAX_PROJECTS, session=session
        ),
    )
    return page, 200, {"Cache-Control": "no-store"}


@users.route("/<int:user_id>/edit", methods=["GET", "POST"])
@administrator_required
def edit(user_id: int) -> ResponseReturnValue:
    """Change the names and the email address of an account."""
    account = actions.show_account(get_unit_of_work(), user_id)
    form = AccountChangeForm(obj=account)
    after = form.run_if_valid(
        lambda: actions.change_user(get_unit_of_work(), user_id, form.entered_changes)
    )
    if after is not None and vars(after) == vars(account):
        flash("No changes.", "info")
        return _redirect_to_user(user_id)
    if after is not None:
        return _flash_and_redirect(after, f"Account {after.username} saved.")
    return render_form_page(
        "admin/users/edit.html",
        form,
        account=account,
        is_you=user_id == get_current_user().id,
        sends_mail=bool(get_settings().mail_url),
    )


@users.post("/<int:user_id>/verify_address")
@administrator_required
def verify_address(user_id: int) -> ResponseReturnValue:
    """Mark the email address of an account as verified."""
    is_new, account = (
        actions.confirm_user_email(get_unit_of_work(), user_id),
        actions.show_account(get_unit_of_work(), user_id),
    )
    if is_new:
        return _flash_and_redirect(account, f"{account.email} is marked as verified.")
    flash("The address is already verified.", "info")
    return _redirect_to_user(user_id)


@users.post("/verify_addresses")
@administrator_required
def verify_addresses() -> ResponseReturnValue:
    """Mark the email addresses of all accounts as verified."""
    flash(f"Email addresses marked as verified: {confirm_all_addresses(get_unit_of_work())}.")
    return redirect(url_for("admin.users.index"))


@users.post("/<int:user_id>/confirm_address")
@administrator_required
def confirm_address(user_id: int) -> ResponseReturnValue:
    """Confirm the new email address that a user has requested."""
    done = confirm_address_as_administrator(
        get_unit_of_work(), user_id, request.form.get("email", "")
    )
    flash(f"Email address {done.email} confirmed.")
    return _redirect_to_user(user_id)


@users.post("/<int:user_id>/approve")
@administrator_required
def approve(user_id: int) -> ResponseReturnValue:
    """Approve an account that is waiting for approval."""
    sign_up.approve_user(get_unit_of_work(), user_id)
    flash("Account approved.")
    return _redirect_to_user(user_id)


@users.post("/<int:user_id>/reject")
@administrator_required
def reject(user_id: int) -> ResponseReturnValue:
    """Reject an account that is waiting for approval, and delete it."""
    sign_up.reject_user(get_unit_of_work(), user_id)
    flash("Account rejected and deleted.")
    return redirect(url_for("admin.users.index", group="pending"))


@users.post("/<int:user_id>/deactivate")
@administrator_required
def deactivate(user_id: int) -> ResponseReturnValue:
    """Deactivate an account until its owner signs in."""
    user = actions.deactivate_user(get_unit_of_work(), user_id)
    return _flash_and_redirect(user, f"{user.username} is deactivated and signed out everywhere.")


@users.post("/<int:user_id>/activate")
@administrator_required
def activate(user_id: int) -> ResponseReturnValue:
    """Activate a deactivated account."""
    user = actions.activate_user(get_unit_of_work(), user_id)
    return _flash_and_redirect(user, f"{user.username} is active again.")


@users.post("/<int:user_id>/lock")
@administrator_required
def lock(user_id: int) -> ResponseReturnValue:
    """Lock an account and sign its owner out everywhere."""
    user = actions.lock_user(get_unit_of_work(), user_id)
    return _flash_and_redirect(user, f"{user.username} is locked and signed out everywhere.")


@users.post("/<int:user_id>/unlock")
@administrator_required
def unlock(user_id: int) -> ResponseReturnValue:
    """Unlock an account and reset its count of failed sign-in attempts."""
    user = actions.unlock_user(get_unit_of_work(), user_id)
    return _flash_and_redirect(user, f"{user.username} is unlocked.")


@users.post("/<int:user_id>/reset_password")
@administrator_required
def reset_password(user_id: int) -> ResponseReturnValue:
    """Reset a password to a random value and show the new password.

    The form determines whether the user's personal access tokens are revoked.
    """
    has_answer = request.form.get("tokens") in _TOKEN_CHOICES or not _count_tokens(user_id)
    if not has_answer and user_id != get_current_user().id:
        flash("Choose whether the personal access tokens are revoked or kept.", "error")
        return _redirect_to_user(user_id)
    wanted = PasswordResetBody(
        keep_applications="keep_applications" in request.form,
        revoke_tokens=request.form.get("tokens") == "revoke",
    )
    user = actions.reset_password(get_unit_of_work(), user_id, wanted)
    store_one_time_secret(_PASSWORD_NAME, user_id, user.password)
    return _flash_and_redirect(
        user, f"{user.username} has a new password and is signed out everywhere."
    )


@users.post("/<int:user_id>/remove_second_factors")
@administrator_required
def remove_second_factors(user_id: int) -> ResponseReturnValue:
    """Remove all second factors from an account whose owner has lost them."""
    done = actions.remove_second_factors(get_unit_of_work(), user_id)
    if done.removed:
        flash(f"Two-factor authentication is off for {done.username}.")
    return _redirect_to_user(user_id)


@users.post("/<int:user_id>/disconnect/<provider>")
@administrator_required
def disconnect(user_id: int, provider: str) -> ResponseReturnValue:
    """Disconnect an account from an identity provider."""
    user = disconnect_user(get_unit_of_work(), user_id, provider)
    return _flash_and_redirect(user, f"{user.username} can no longer sign in with this provider.")


@users.post("/<int:user_id>/make_administrator")
@administrator_required
def make_administrator(user_id: int) -> ResponseReturnValue:
    """Grant a user the administrator role."""
    user = actions.change_user(get_unit_of_work(), user_id, AccountChangeBody(admin=True))
    return _flash_and_redirect(user, f"{user.username} is now an administrator.")


@users.post("/<int:user_id>/unmake_administrator")
@administrator_required
def unmake_administrator(user_id: int) -> ResponseReturnValue:
    """Revoke a user's administrator role."""
    user = actions.change_user(get_unit_of_work(), user_id, AccountChangeBody(admin=False))
    return _flash_and_redirect(user, f"{user.username} is no longer an administrator.")


def _count_tokens(user_id: int) -> int:
    wanted = TokenFilter(owner_id=user_id, is_active=True)
    return count_tokens(wanted, session=db.session(), now=get_current_time())


def _flash_and_redirect(user: Account, sentence: str) -> ResponseReturnValue:
    """Redirect to the account's page with a success message."""
    flash(sentence)
    return _redirect_to_user(user.id)


def _redirect_to_user(user_id: int) -> ResponseReturnValue:
    return redirect(url_for("admin.users.show", user_id=user_id))


personal_data = Blueprint("personal_data", __name__, url_prefix="/users")


@personal_data.post("/<int:user_id>/export")
@administrator_required
def export(user_id: int) -> ResponseReturnValue:
    """Download a user's personal data."""
    return build_personal_data_response(user_id)


@personal_data.route("/<int:user_id>/delete", methods=["GET", "POST"])
@administrator_required
def delete(user_id: int) -> ResponseReturnValue:
    """Show the consequences of deleting a user, or erase the user's account and personal data."""
    user = get_account(user_id, session=db.session())
    form = AccountDeletionForm(heir=get_current_user().username, username=user.username)
    if form.run_if_valid(lambda: _erase_user(user_id, form)):
        flash(f"Account {user.username} deleted.")
        return redirect(url_for("admin.users.index"))
    return render_form_page(
        "admin/users/delete.html",
        form,
        account=user,
        application_count=count_applications(user, session=db.session()),
        project_count=count_own_projects(user, session=db.session()),
    )


def _erase_user(user_id: int, form: AccountDeletionForm) -> ErasureResult:
    try:
        return actions.delete_user(get_unit_of_work(), user_id, form.erasure_options)
    except NotFoundError as error:
        raise InvalidError(str(error), field="heir") from error
