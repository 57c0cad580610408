"""What the user of this browser approves on the pages of applications and devices."""

from dataclasses import replace

from flask import request

from domain.access.scopes import ADMIN_MODE
from domain.oauth.consent.approvals import Approval
from web.access.marks import get_current_user, is_signed_in_afresh


def visitors_approval() -> Approval:
    """Return the approval of the signed-in user, of everything that they can grant."""
    user = get_current_user()
    return Approval(
        user_id=user.id,
        auth_time=user.auth_time,
        sign_in_id=user.sign_in_id,
        methods=" ".join(user.methods),
        may_administer=user.is_admin,
        has_old_proof=not is_signed_in_afresh(),
    )


def decided_approval() -> Approval:
    """Return the approval of a submitted page, on which an administrator ticks `admin_mode`."""
    approval = visitors_approval()
    has_ticked = ADMIN_MODE in request.form
    return replace(approval, may_administer=approval.may_administer and has_ticked)


def needs_new_proof() -> bool:
    """Return whether an administrator ticked `admin_mode` with a sign-in that is too old for it."""
    approval = decided_approval()
    return approval.may_administer and approval.has_old_proof
