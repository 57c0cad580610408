"""Actions on notification rules, by the users who own them or by the operator."""

from collections.abc import Mapping, Sequence

from sqlalchemy import select

from domain.access.actions import action, read_action
from domain.access.actor import UnitOfWork
from domain.audit.events import EventKind
from domain.core.errors import InvalidError, NotFoundError
from domain.core.types.pagination import ListPage
from domain.paging.contacts.rule_types import (
    ContactRule,
    ContactRuleChange,
    ContactRuleQuery,
    ContactRuleSummary,
    NewContactRule,
    build_rule_window,
    describe_rule_gaps,
    describe_rules,
    serialize_rule_window,
)
from domain.paging.notifications.contacts import ContactOwner, get_contact_row
from domain.paging.notifications.rules import build_rule
from models import Contact
from models import ContactRule as RuleRow

MAX_CONTACT_RULES = 50


@read_action("contact_rules.index")
def list_rules(work: UnitOfWork, query: ContactRuleQuery) -> ListPage[ContactRule]:
    """List the notification rules of an account."""
    rows, labels = _list_rule_rows(work), _find_contact_labels(work)
    part = rows[query.offset : query.offset + query.page_size]
    return ListPage(items=[_build_contact_rule(each, labels) for each in part], total=len(rows))


@read_action("contact_rules.summary")
def summarize_rules(work: UnitOfWork) -> ContactRuleSummary:
    """Summarize your notification rules and the alerts that no rule matches."""
    rules = [build_rule(each) for each in _list_rule_rows(work)]
    return ContactRuleSummary(
        sentences=list(describe_rules(rules, _find_contact_labels(work))),
        gaps=list(describe_rule_gaps(rules)),
    )


@read_action("contact_rules.show")
def show_rule(work: UnitOfWork, rule_id: int) -> ContactRule:
    """Show a notification rule."""
    return _build_contact_rule(_get_rule_row(work, rule_id), _find_contact_labels(work))


@action("contact_rules.create")
def create_rule(work: UnitOfWork, new: NewContactRule) -> ContactRule:
    """Create a notification rule for future pages.

    Raise InvalidError if a field is invalid, or if you have the maximum number of rules.
    """
    if len(_list_rule_rows(work)) >= MAX_CONTACT_RULES:
        message = (
            f"You can have at most {MAX_CONTACT_RULES} notification rules. Delete a rule first."
        )
        raise InvalidError(message, field="contact_id")
    row = RuleRow(user_id=work.actor.id or 0, created_at=work.now)
    _set_rule_fields(work, row, new)
    work.session.add(row)
    work.session.flush()  # The flush assigns the ID.
    _record_rule_event(work, EventKind.CONTACT_RULE_CREATED, row)
    return _build_contact_rule(row, _find_contact_labels(work))


@action("contact_rules.change")
def change_rule(work: UnitOfWork, rule_id: int, change: ContactRuleChange) -> ContactRule:
    """Change a notification rule for future pages."""
    row = _get_rule_row(work, rule_id)
    present = _build_contact_rule(row, _find_contact_labels(work)).model_dump()
    _set_rule_fields(work, row, NewContactRule.model_validate({**present, **change.given_values}))
    if work.session.is_modified(row):
        _record_rule_event(work, EventKind.CONTACT_RULE_CHANGED, row)
    return _build_contact_rule(row, _find_contact_labels(work))


@action("contact_rules.delete")
def delete_rule(work: UnitOfWork, rule_id: int) -> ContactRule:
    """Delete a notification rule.

    Queued messages are still sent.
    """
    row = _get_rule_row(work, rule_id)
    gone = _build_contact_rule(row, _find_contact_labels(work))
    work.session.delete(row)
    _record_rule_event(work, EventKind.CONTACT_RULE_REMOVED, row)
    return gone


def _set_rule_fields(work: UnitOfWork, row: RuleRow, new_contact_rule: NewContactRule) -> None:
    """Store the fields of a request body in the row of a notification rule.

    Raise InvalidError if the user already has an identical rule.
    """
    others = [build_rule(each) for each in _list_rule_rows(work) if each is not row]
    row.contact_id = _get_confirmed_contact(work, new_contact_rule.contact_id).id
    row.alerts = new_contact_rule.alerts
    row.delay_minutes = new_contact_rule.delay_minutes
    row.only = serialize_rule_window(new_contact_rule.only)
    if build_rule(row) in others:
        raise InvalidError("An identical rule already exists.", field="contact_id")


def _get_confirmed_contact(work: UnitOfWork, contact_id: int) -> Contact:
    try:
        contact = get_contact_row(
            contact_id, ContactOwner(user_id=work.actor.id), session=work.session
        )
    except NotFoundError as error:
        raise InvalidError(str(error), field="contact_id") from error
    if contact.confirmed_at is None:
        raise InvalidError("Confirm the contact first.", field="contact_id")
    if contact.address_ciphertext is None:
        message = "To use your account's email address in a rule, add it as a contact first."
        raise InvalidError(message, field="contact_id")
    return contact


def _list_rule_rows(work: UnitOfWork) -> Sequence[RuleRow]:
    own = RuleRow.user_id == work.actor.id
    return work.session.scalars(select(RuleRow).where(own).order_by(RuleRow.id)).all()


def _get_rule_row(work: UnitOfWork, rule_id: int) -> RuleRow:
    own = RuleRow.user_id == work.actor.id, RuleRow.id == rule_id
    row = work.session.scalar(select(RuleRow).where(*own))
    if row is None:
        raise NotFoundError("Rule not found.")
    return row


def _find_contact_labels(work: UnitOfWork) -> Mapping[int, str]:
    own = select(Contact.id, Contact.label).where(Contact.user_id == work.actor.id)
    return dict(work.session.execute(own).all())


def _build_contact_rule(row: RuleRow, labels: Mapping[int, str]) -> ContactRule:
    rule = build_rule(row)
    return ContactRule(
        id=row.id,
        contact_id=row.contact_id,
        alerts=rule.alert_selection.value,
        delay_minutes=row.delay_minutes,
        only=build_rule_window(rule.only),
        sentence="".join(describe_rules([rule], labels)),
        created_at=row.created_at,
    )


def _record_rule_event(work: UnitOfWork, kind: EventKind, row: RuleRow) -> None:
    details = {
        "contact_id": row.contact_id,
        "alerts": row.alerts,
        "delay_minutes": row.delay_minutes,
    }
    work.record_audit_event(kind, user_id=row.user_id, details=details)
