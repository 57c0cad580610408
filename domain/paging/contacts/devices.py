"""Registers browsers as contacts, and renews their push subscriptions.

Only a browser can register itself, so these functions are not part of the API. The subscription
proves that messages reach the browser, so the contact needs no confirmation.
"""

import hmac
from collections.abc import Mapping
from itertools import chain
from typing import NamedTuple

from sqlalchemy import Select, select
from sqlalchemy.orm import Session

from domain.access.actor import UnitOfWork
from domain.accounts.users import ACTIVE
from domain.audit.events import EventKind
from domain.core.database.pagination import parse_id
from domain.core.errors import NotFoundError
from domain.core.keyring import Keyring, UndecryptableError
from domain.delivery.outgoing.ip_address_policy import AddressPolicy, check_url_allowed
from domain.paging.contacts.actions import record_contact_event
from domain.paging.notifications import contacts
from domain.paging.notifications.contact_types.device import DEVICE, build_device_address
from domain.paging.notifications.contacts import Contact, ContactOwner, NewContact
from domain.paging.notifications.push_subscriptions import (
    PushSubscription,
    parse_push_subscription,
)
from models import Contact as ContactRow
from models import User

_NOT_FOUND_MESSAGE = "Device not found. Turn on notifications again."


def register_device(work: UnitOfWork, subscription_text: str, label: str) -> Contact:
    """Add the browser of the acting user as a contact, or renew its contact.

    A contact whose subscription has expired is renewed if it has the same label, so that
    notification rules stay valid. Raise InvalidError if the subscription is invalid, or if the user
    has the maximum number of contacts.
    """
    subscription, keyring = (
        _parse_allowed_subscription(work, subscription_text),
        work.policy(Keyring),
    )
    own = _select_devices().where(ContactRow.user_id == work.actor.id).with_for_update()
    rows = work.session.scalars(own).all()
    # A browser has only one subscription for this service.
    known = ((each, _find_subscription(each, keyring)) for each in rows)
    same = (each for each, own in known if own and own.endpoint == subscription.endpoint)
    expired = (each for each in rows if each.confirmed_at is None and each.label == label)
    row = next(chain(same, expired), None)
    if row is not None:
        return _renew_contact(work, row, subscription)
    new = NewContact(
        owner=ContactOwner(user_id=work.actor.id),
        address=build_device_address(subscription),
        label=label,
        is_confirmed=True,
    )
    made = contacts.create_contact(new, session=work.session, keyring=keyring, now=work.now)
    record_contact_event(work, EventKind.CONTACT_CREATED, EventKind.CHANNEL_CREATED, made)
    return made


def renew_device(work: UnitOfWork, token: str, subscription_text: str) -> str:
    """Replace the push subscription of the device that a token identifies, and return a new token.

    Raise NotFoundError if the token does not belong to the current subscription of a device, or
    InvalidError if the new subscription is invalid.
    """
    number, _, code = token.partition(".")
    contact_id = parse_id(number)
    device = _select_devices().where(ContactRow.id == contact_id).with_for_update()
    row = None if contact_id is None else work.session.scalar(device)
    user = work.session.get(User, row.user_id) if row is not None else None
    keyring = work.policy(Keyring)
    subscription = _find_subscription(row, keyring) if row is not None else None
    if row is None or subscription is None or user is None or user.state != ACTIVE:
        raise NotFoundError(_NOT_FOUND_MESSAGE)
    codes = keyring.compute_digests(_format_signed_text(row, subscription))
    if not any(hmac.compare_digest(each.hex().encode(), code.encode()) for each in codes):
        raise NotFoundError(_NOT_FOUND_MESSAGE)
    own = work.with_actor(user.id, user.username)
    renewed = _parse_allowed_subscription(work, subscription_text)
    _renew_contact(own, row, renewed)
    return _build_token(row, renewed, keyring)


class DeviceIdentity(NamedTuple):
    """A digest that identifies a device's browser, and a token that renews its contact."""

    digest: str
    token: str


def find_device_identities(
    user_id: int, *, session: Session, keyring: Keyring
) -> Mapping[int, DeviceIdentity]:
    """Return the identities of a user's devices, by contact ID."""
    found = {}
    for row in session.scalars(_select_devices().where(ContactRow.user_id == user_id)):
        subscription = _find_subscription(row, keyring)
        if subscription is not None:
            token = _build_token(row, subscription, keyring)
            found[row.id] = DeviceIdentity(subscription.digest, token)
    return found


def _parse_allowed_subscription(work: UnitOfWork, text: str) -> PushSubscription:
    """Parse a subscription, and check that the address of its push service is not blocked.

    Raise InvalidError if the subscription is invalid or the address is blocked.
    """
    subscription = parse_push_subscription(text)
    policy = AddressPolicy.from_contact_hosts(work.settings.outgoing_contact_hosts)
    check_url_allowed(subscription.url, policy, field="subscription")
    return subscription


def _build_token(row: ContactRow, subscription: PushSubscription, keyring: Keyring) -> str:
    return f"{row.id}.{keyring.compute_digest(_format_signed_text(row, subscription)).hex()}"


def _format_signed_text(row: ContactRow, subscription: PushSubscription) -> str:
    return f"renew device {row.id} {subscription.digest}"


def _renew_contact(work: UnitOfWork, row: ContactRow, subscription: PushSubscription) -> Contact:
    address, keyring = build_device_address(subscription), work.policy(Keyring)
    contacts.replace_address(row, address, keyring=keyring, now=work.now)
    if row.confirmed_at is None:
        row.confirmed_at = work.now
        row.tries, row.failing_since, row.last_error = 0, None, None
    renewed = contacts.build_contact(row)
    record_contact_event(work, EventKind.CONTACT_CONFIRMED, EventKind.CONTACT_CONFIRMED, renewed)
    return renewed


def _select_devices() -> Select[ContactRow]:
    return select(ContactRow).where(ContactRow.type == DEVICE.name).order_by(ContactRow.id)


def _find_subscription(row: ContactRow, keyring: Keyring) -> PushSubscription | None:
    try:
        return parse_push_subscription(keyring.decrypt(row.address_ciphertext or ""))
    except UndecryptableError:
        return None
