"""The user settings page for contacts and notification rules."""

from collections.abc import Sequence

from flask import flash, redirect, render_template, url_for
from flask.typing import ResponseReturnValue

from blueprints.paging.notifications.shared import empty_form, say_result, waits_for_mail
from domain.core.database.paging import LARGEST_ID
from domain.core.errors import InvalidError
from domain.paging.contacts import actions, rule_actions
from domain.paging.contacts.rule_types import ContactRuleChange, ContactRuleQuery, NewContactRule
from domain.paging.contacts.types import ContactCodeBody, ContactQuery
from domain.paging.notifications.contacts import Contact
from domain.paging.notifications.recipients import preferences_of, zone_of
from forms.contacts import CodeForm, ContactForm, PagingPreferencesForm, RuleForm
from web.access.decorators import get_current_user, signed_in
from web.extensions import db
from web.http.endpoints import PageBlueprint
from web.http.work import work
from web.pages.form_errors import refusals_shown
from web.pages.list_query import list_query
from web.services import settings

contacts = PageBlueprint("contacts", __name__, url_prefix="/-/user_settings/contacts")
_NO_MAIL = "this service cannot send email until an administrator sets MAIL_URL."
_ONE = f"/<int(max={LARGEST_ID}):contact_id>"
_RULE = f"/rules/<int(max={LARGEST_ID}):rule_id>"


@contacts.get("")
@signed_in
def index() -> ResponseReturnValue:
    """Show the user's contacts, rules and paging preferences."""
    list_query()
    return _show_page()


@contacts.post("")
@signed_in
def create() -> ResponseReturnValue:
    """Add a contact and send it a code."""
    form = ContactForm()
    made = form.carry_out(lambda: actions.create_contact(work(), form.contact))
    if made is None:
        return _show_page(form=form)
    if waits_for_mail(form):
        flash(f"Contact added. No code was sent, because {_NO_MAIL}", "warning")
    else:
        flash("Contact added. A code is on its way. Enter it below.")
    return _back()


@contacts.post(f"{_ONE}/confirm")
@signed_in
def confirm(contact_id: int) -> ResponseReturnValue:
    """Confirm a contact with its code."""
    form = CodeForm()
    if not form.validate_on_submit():
        flash(form.code.errors[0], "error")
        return _back()
    with refusals_shown(InvalidError):
        actions.confirm_contact(work(), contact_id, form.read(ContactCodeBody))
        flash("Contact confirmed. Your pages are now sent to it.")
    return _back()


@contacts.post(f"{_ONE}/send_code")
@signed_in
def send_code(contact_id: int) -> ResponseReturnValue:
    """Send a new code to a contact."""
    actions.send_code(work(), contact_id)
    flash("A new code is on its way.")
    return _back()


@contacts.post(f"{_ONE}/test", endpoint="send_test")
@signed_in
def send_test_message(contact_id: int) -> ResponseReturnValue:
    """Send a test message and show the result."""
    say_result(actions.send_contact_test(work(), contact_id))
    return _back()


@contacts.post(f"{_ONE}/delete")
@signed_in
def delete(contact_id: int) -> ResponseReturnValue:
    """Delete a contact."""
    gone = actions.delete_contact(work(), contact_id)
    flash(f"The contact “{gone.label}” was deleted.")
    return _back()


@contacts.post("/rules")
@signed_in
def create_rule() -> ResponseReturnValue:
    """Add a notification rule."""
    form = RuleForm.among(_own_contacts())
    if form.carry_out(lambda: rule_actions.create_rule(work(), form.rule(NewContactRule))) is None:
        return _show_page(rule=form)
    flash("Rule added.")
    return _back()


@contacts.get(_RULE)
@signed_in
def edit_rule(rule_id: int) -> ResponseReturnValue:
    """Show the form of a notification rule."""
    list_query()
    rule = rule_actions.show_rule(work(), rule_id)
    return _rule_page(rule_id, RuleForm.of(rule, _own_contacts()))


@contacts.post(_RULE)
@signed_in
def change_rule(rule_id: int) -> ResponseReturnValue:
    """Change a notification rule."""
    form = RuleForm.among(_own_contacts())
    changed = form.carry_out(
        lambda: rule_actions.change_rule(work(), rule_id, form.rule(ContactRuleChange))
    )
    if changed is None:
        return _rule_page(rule_id, form), 422
    flash("Rule saved.")
    return _back()


@contacts.post(f"{_RULE}/delete")
@signed_in
def delete_rule(rule_id: int) -> ResponseReturnValue:
    """Delete a notification rule."""
    rule_actions.delete_rule(work(), rule_id)
    flash("Rule deleted.")
    return _back()


@contacts.post("/preferences")
@signed_in
def change_preferences() -> ResponseReturnValue:
    """Change quiet hours and follow-ups."""
    form = PagingPreferencesForm()
    changed = form.carry_out(lambda: actions.change_preferences(work(), form.preferences))
    if changed is None:
        return _show_page(preferences=form)
    flash("Preferences saved.")
    return _back()


def _own_contacts() -> Sequence[Contact]:
    """Return the contacts of the user."""
    return actions.list_contacts(work(), ContactQuery(per_page=100)).items


def _show_page(
    *,
    form: ContactForm | None = None,
    preferences: PagingPreferencesForm | None = None,
    rule: RuleForm | None = None,
) -> ResponseReturnValue:
    user, found = get_current_user(), _own_contacts()
    present = preferences_of(user.id, session=db.session())
    form = form or empty_form()
    shown = preferences or PagingPreferencesForm.of(present, user.user.time_zone)
    rule = rule or RuleForm.among(found, formdata=None)
    page = render_template(
        "notifications/contacts.html",
        contacts=found,
        form=form,
        rules=rule_actions.list_rules(work(), ContactRuleQuery(per_page=100)).items,
        rule_summary=rule_actions.summarize_rules(work()),
        rule_form=rule,
        rule_zone=zone_of(user.id, session=db.session()),
        preferences=shown,
        time_zone=user.user.time_zone,
        code_form=CodeForm(formdata=None),
        sends_mail=bool(settings().mail_url),
    )
    return page, 422 if form.errors or shown.errors or rule.errors else 200


def _rule_page(rule_id: int, form: RuleForm) -> str:
    zone = zone_of(get_current_user().id, session=db.session())
    return render_template(
        "notifications/rule.html", rule_id=rule_id, rule_form=form, rule_zone=zone
    )


def _back() -> ResponseReturnValue:
    return redirect(url_for("contacts.index"))
