"""Actions of users on their notification rules, and of the operator for users."""

from collections.abc import Mapping, Sequence

from sqlalchemy import select

from domain.access.actions import action, question
from domain.access.actor import Work
from domain.audit.events import EventKind
from domain.core.errors import InvalidError, NotFoundError
from domain.core.types.base import Found
from domain.paging.contacts.rule_types import (
    ContactRule,
    ContactRuleChange,
    ContactRuleQuery,
    ContactRuleSummary,
    NewContactRule,
    gaps,
    sentences,
    shown_time,
    stored_time,
)
from domain.paging.notifications.contacts import Owner, get_row
from domain.paging.notifications.rules import rule_of
from models import Contact
from models import ContactRule as RuleRow

MOST_RULES = 50


@question("contact_rules.index")
def list_rules(work: Work, query: ContactRuleQuery) -> Found[ContactRule]:
    """List the notification rules of an account."""
    rows, labels = _rows(work), _labels(work)
    part = rows[query.offset : query.offset + query.size]
    return Found(items=[_view(each, labels) for each in part], total=len(rows))


@question("contact_rules.summary")
def summarize_rules(work: Work) -> ContactRuleSummary:
    """Summarize your notification rules and the alerts that no rule matches."""
    rules = [rule_of(each) for each in _rows(work)]
    return ContactRuleSummary(
        sentences=list(sentences(rules, _labels(work))), gaps=list(gaps(rules))
    )


@question("contact_rules.show")
def show_rule(work: Work, rule_id: int) -> ContactRule:
    """Show a notification rule."""
    return _view(_get(work, rule_id), _labels(work))


@action("contact_rules.create")
def create_rule(work: Work, new: NewContactRule) -> ContactRule:
    """Create a notification rule for future pages."""
    if len(_rows(work)) >= MOST_RULES:
        message = f"You can have at most {MOST_RULES} notification rules. Delete a rule first."
        raise InvalidError(message, field="contact_id")
    row = RuleRow(user_id=work.actor.id or 0, created_at=work.now)
    _set(work, row, new)
    work.session.add(row)
    work.session.flush()  # assigns the id
    _record(work, EventKind.CONTACT_RULE_CREATED, row)
    return _view(row, _labels(work))


@action("contact_rules.change")
def change_rule(work: Work, rule_id: int, change: ContactRuleChange) -> ContactRule:
    """Change a notification rule for future pages."""
    row = _get(work, rule_id)
    present = _view(row, _labels(work)).model_dump()
    _set(work, row, NewContactRule.model_validate({**present, **change.given}))
    if work.session.is_modified(row):
        _record(work, EventKind.CONTACT_RULE_CHANGED, row)
    return _view(row, _labels(work))


@action("contact_rules.delete")
def delete_rule(work: Work, rule_id: int) -> ContactRule:
    """Delete a notification rule.

    Queued messages are still sent.
    """
    row = _get(work, rule_id)
    gone = _view(row, _labels(work))
    work.session.delete(row)
    _record(work, EventKind.CONTACT_RULE_REMOVED, row)
    return gone


def _set(work: Work, row: RuleRow, wanted: NewContactRule) -> None:
    """Set the fields of a row.

    Raise InvalidError if another rule is equal.
    """
    others = [rule_of(each) for each in _rows(work) if each is not row]
    row.contact_id = _contact(work, wanted.contact_id).id
    row.alerts = wanted.alerts
    row.delay_minutes = wanted.delay_minutes
    row.only = stored_time(wanted.only)
    if rule_of(row) in others:
        raise InvalidError("An identical rule already exists.", field="contact_id")


def _contact(work: Work, contact_id: int) -> Contact:
    try:
        contact = get_row(contact_id, Owner(user_id=work.actor.id), session=work.session)
    except NotFoundError as error:
        raise InvalidError(str(error), field="contact_id") from error
    if contact.confirmed_at is None:
        raise InvalidError("Confirm the contact first.", field="contact_id")
    if contact.address_ciphertext is None:
        message = "To use your account's email address in a rule, add it as a contact first."
        raise InvalidError(message, field="contact_id")
    return contact


def _rows(work: Work) -> Sequence[RuleRow]:
    own = RuleRow.user_id == work.actor.id
    return work.session.scalars(select(RuleRow).where(own).order_by(RuleRow.id)).all()


def _get(work: Work, rule_id: int) -> RuleRow:
    own = RuleRow.user_id == work.actor.id, RuleRow.id == rule_id
    row = work.session.scalar(select(RuleRow).where(*own))
    if row is None:
        raise NotFoundError("Rule not found.")
    return row


def _labels(work: Work) -> Mapping[int, str]:
    own = select(Contact.id, Contact.label).where(Contact.user_id == work.actor.id)
    return dict(work.session.execute(own).all())


def _view(row: RuleRow, labels: Mapping[int, str]) -> ContactRule:
    rule = rule_of(row)
    return ContactRule(
        id=row.id,
        contact_id=row.contact_id,
        alerts=rule.concern.value,
        delay_minutes=row.delay_minutes,
        only=shown_time(rule.only),
        sentence="".join(sentences([rule], labels)),
        created_at=row.created_at,
    )


def _record(work: Work, kind: EventKind, row: RuleRow) -> None:
    details = {
        "contact_id": row.contact_id,
        "alerts": row.alerts,
        "delay_minutes": row.delay_minutes,
    }
    work.record(kind, user_id=row.user_id, details=details)
