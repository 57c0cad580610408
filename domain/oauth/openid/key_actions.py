"""Lists and rotates the keys that sign ID tokens."""

from domain.access.actions import action, question
from domain.access.actor import Work
from domain.audit.events import EventKind
from domain.keyring import Keyring
from domain.oauth.openid.key_types import Key, Keys, NewKey, NewKeyBody
from domain.oauth.openid.keys import list_published_keys, rotate


@question("keys.index")
def list_keys(work: Work) -> Keys:
    """List the published keys, oldest first."""
    published = list_published_keys(session=work.session, now=work.now)
    return Keys(keys=[Key.model_validate(each) for each in published])


@action("keys.rotate")
def rotate_keys(work: Work, new: NewKeyBody) -> NewKey:
    """Create a key. Old keys stay published until all their ID tokens have expired."""
    keyring = work.policy(Keyring)
    kid = rotate(new.handover, bits=new.bits, session=work.session, keyring=keyring, now=work.now)
    details = {"handover": new.handover.value, "bits": new.bits}
    work.record(EventKind.SIGNING_KEY_ROTATED, subject=kid, details=details)
    return NewKey(kid=kid, keys=list_keys(work).keys)
