"""The user settings page for contacts and notification rules."""

from collections.abc import Sequence
from typing import Any

from flask import flash, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue

from blueprints.paging.notifications.contact_forms import (
    build_contact_change_form,
    build_gallery_context,
    build_new_contact_form,
    flash_test_result,
    read_gallery_query,
    render_service_page,
)
from domain.core.database.pagination import MAX_ID
from domain.core.errors import InvalidError
from domain.paging.contacts import actions, devices, rule_actions
from domain.paging.contacts.rule_types import ContactRuleChange, ContactRuleQuery, NewContactRule
from domain.paging.contacts.types import ContactCodeBody, ContactQuery
from domain.paging.notifications.contact_types.registry import CONTACT_TYPES
from domain.paging.notifications.contacts import Contact
from domain.paging.notifications.push_requests import encode_public_key, get_or_create_push_key
from domain.paging.notifications.recipients import get_preferences, get_user_time_zone
from forms.contacts import (
    ContactCodeForm,
    ContactForm,
    NotificationRuleForm,
    PagingPreferencesForm,
    PushSubscriptionForm,
)
from web.access.decorators import get_current_user, sign_in_required
from web.extensions import db
from web.http.endpoints import PageBlueprint
from web.http.unit_of_work import get_unit_of_work
from web.pages.form_errors import show_errors_on_next_page
from web.pages.list_query import get_list_query
from web.services import get_current_time, get_services, get_settings

contacts = PageBlueprint("contacts", __name__, url_prefix="/-/user_settings/contacts")
_CONTACT_PATH = f"/<int(max={MAX_ID}):contact_id>"
_RULE_PATH = f"/rules/<int(max={MAX_ID}):rule_id>"


@contacts.get("")
@sign_in_required
def index() -> ResponseReturnValue:
    """Show the user's contacts, rules and paging preferences, or the form for a new contact."""
    service, search = read_gallery_query()
    return (
        _render_new_page(build_new_contact_form(service))
        if service
        else _render_page(search=search)
    )


@contacts.post("")
@sign_in_required
def create() -> ResponseReturnValue:
    """Add a contact and send it a code."""
    form = build_new_contact_form(request.form.get("service", ""))
    made = form.run_if_valid(
        lambda: actions.create_contact(get_unit_of_work(), form.entered_contact)
    )
    if made is None:
        return _render_new_page(form)
    flash("Contact added.")
    return _redirect_to_list()


@contacts.route(_CONTACT_PATH, methods=["GET", "POST"])
@sign_in_required
def edit(contact_id: int) -> ResponseReturnValue:
    """Show the form for a contact, and change the contact."""
    contact = actions.show_contact(get_unit_of_work(), contact_id)
    form = build_contact_change_form(contact)
    changed = form.run_if_valid(
        lambda: actions.change_contact(get_unit_of_work(), contact_id, form.entered_change)
    )
    if changed is None:
        return render_service_page(form, back=url_for("contacts.index"))
    is_moved = not changed.confirmed_at and form.entered_change.address is not None
    flash("Contact saved. Confirm its new address." if is_moved else "Contact saved.")
    return _redirect_to_list()


@contacts.get(f"{_CONTACT_PATH}/code")
@sign_in_required
def code(contact_id: int) -> ResponseReturnValue:
    """Show only whether the code was sent, for a page that polls this status."""
    get_list_query()
    page = render_template(
        "notifications/_code.html",
        contact=actions.show_contact(get_unit_of_work(), contact_id),
        **_build_email_context(),
    )
    return page, 200, {"Cache-Control": "no-store"}


@contacts.post(f"{_CONTACT_PATH}/confirm")
@sign_in_required
def confirm(contact_id: int) -> ResponseReturnValue:
    """Confirm a contact with its code."""
    form = ContactCodeForm()
    if not form.validate_on_submit():
        flash(form.code.errors[0], "error")
        return _redirect_to_list()
    with show_errors_on_next_page(InvalidError):
        actions.confirm_contact(
            get_unit_of_work(), contact_id, form.build_entered_body(ContactCodeBody)
        )
        flash("Contact confirmed. Your pages are now sent to this contact.")
    return _redirect_to_list()


@contacts.post(f"{_CONTACT_PATH}/send_code")
@sign_in_required
def send_code(contact_id: int) -> ResponseReturnValue:
    """Send a new code to a contact."""
    actions.send_code(get_unit_of_work(), contact_id)
    flash("A new code was requested.")
    return _redirect_to_list()


@contacts.post(f"{_CONTACT_PATH}/test", endpoint="send_test")
@sign_in_required
def send_test_message(contact_id: int) -> ResponseReturnValue:
    """Send a test message and show the result."""
    flash_test_result(actions.send_contact_test(get_unit_of_work(), contact_id))
    return _redirect_to_list()


@contacts.post(f"{_CONTACT_PATH}/delete")
@sign_in_required
def delete(contact_id: int) -> ResponseReturnValue:
    """Delete a contact."""
    gone = actions.delete_contact(get_unit_of_work(), contact_id)
    flash(f"The contact “{gone.label}” was deleted.")
    return _redirect_to_list()


@contacts.post("/devices/key.json")
@sign_in_required
def find_push_key() -> ResponseReturnValue:
    """Return the public key for push subscriptions. The first request creates the key pair."""
    key = get_or_create_push_key(
        session=db.session(), keyring=get_services().keyring, now=get_current_time()
    )
    return {"public_key": encode_public_key(key)}


@contacts.post("/devices")
@sign_in_required
def add_device() -> ResponseReturnValue:
    """Add the browser as a contact."""
    form = PushSubscriptionForm()
    if not form.validate_on_submit():
        flash(next(iter(form.errors.values()))[0], "error")
        return _redirect_to_list()
    with show_errors_on_next_page(InvalidError):
        made = devices.register_device(
            get_unit_of_work(), form.subscription.data or "", form.label.data or ""
        )
        flash(f"Pages are now shown on “{made.label}”. Send a test message to check it.")
    return _redirect_to_list()


@contacts.post("/rules")
@sign_in_required
def create_rule() -> ResponseReturnValue:
    """Add a notification rule."""
    form = NotificationRuleForm.build_with_contacts(_list_own_contacts())
    made = form.run_if_valid(
        lambda: rule_actions.create_rule(get_unit_of_work(), form.build_rule(NewContactRule))
    )
    if made is None:
        return _render_page(rule=form)
    flash("Rule added.")
    return _redirect_to_list()


@contacts.get(_RULE_PATH)
@sign_in_required
def edit_rule(rule_id: int) -> ResponseReturnValue:
    """Show the form to change a notification rule."""
    get_list_query()
    rule = rule_actions.show_rule(get_unit_of_work(), rule_id)
    return _render_rule_page(rule_id, NotificationRuleForm.from_rule(rule, _list_own_contacts()))


@contacts.post(_RULE_PATH)
@sign_in_required
def change_rule(rule_id: int) -> ResponseReturnValue:
    """Change a notification rule."""
    form = NotificationRuleForm.build_with_contacts(_list_own_contacts())
    changed = form.run_if_valid(
        lambda: rule_actions.change_rule(
            get_unit_of_work(), rule_id, form.build_rule(ContactRuleChange)
        )
    )
    if changed is None:
        return _render_rule_page(rule_id, form), 422
    flash("Rule saved.")
    return _redirect_to_list()


@contacts.post(f"{_RULE_PATH}/delete")
@sign_in_required
def delete_rule(rule_id: int) -> ResponseReturnValue:
    """Delete a notification rule."""
    rule_actions.delete_rule(get_unit_of_work(), rule_id)
    flash("Rule deleted.")
    return _redirect_to_list()


@contacts.post("/preferences")
@sign_in_required
def change_preferences() -> ResponseReturnValue:
    """Change the user's quiet hours and follow-up messages."""
    form = PagingPreferencesForm()
    changed = form.run_if_valid(
        lambda: actions.change_preferences(get_unit_of_work(), form.entered_preferences)
    )
    if changed is None:
        return _render_page(preferences=form)
    flash("Preferences saved.")
    return _redirect_to_list()


def _list_own_contacts() -> Sequence[Contact]:
    """Return up to 100 contacts of the signed-in user."""
    return actions.list_contacts(get_unit_of_work(), ContactQuery(per_page=100)).items


def _render_page(
    *,
    preferences: PagingPreferencesForm | None = None,
    rule: NotificationRuleForm | None = None,
    search: str = "",
) -> ResponseReturnValue:
    user, found = get_current_user(), _list_own_contacts()
    session, keyring = db.session(), get_services().keyring
    present = get_preferences(user.id, session=session)
    shown = preferences or PagingPreferencesForm.from_preferences(present, user.user.time_zone)
    rule = rule or NotificationRuleForm.build_with_contacts(found, formdata=None)
    page = render_template(
        "notifications/contacts.html",
        contacts=found,
        rules=rule_actions.list_rules(get_unit_of_work(), ContactRuleQuery(per_page=100)).items,
        rule_summary=rule_actions.summarize_rules(get_unit_of_work()),
        rule_form=rule,
        rule_zone=get_user_time_zone(user.id, session=session),
        preferences=shown,
        time_zone=user.user.time_zone,
        code_form=ContactCodeForm(formdata=None),
        device_identities=devices.find_device_identities(user.id, session=session, keyring=keyring),
        **{**build_gallery_context(search, found), **_build_email_context()},
    )
    return page, 422 if shown.errors or rule.errors else 200


def _render_new_page(form: ContactForm) -> ResponseReturnValue:
    here = url_for("contacts.index")
    return render_service_page(form, back=here, create=here)


def _build_email_context() -> dict[str, Any]:
    """Return whether this service sends email, and which types of contacts require email."""
    return {
        "sends_mail": bool(get_settings().mail_url),
        "mail_types": {each.name for each in CONTACT_TYPES if each.uses_mail_server},
    }


def _render_rule_page(rule_id: int, form: NotificationRuleForm) -> str:
    zone = get_user_time_zone(get_current_user().id, session=db.session())
    return render_template(
        "notifications/rule.html", rule_id=rule_id, rule_form=form, rule_zone=zone
    )


def _redirect_to_list() -> ResponseReturnValue:
    return redirect(url_for("contacts.index"))
