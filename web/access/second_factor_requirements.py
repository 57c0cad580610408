"""Checks whether the signed-in user has a second factor that the instance or a group requires."""

from flask import g
from flask_login import current_user

from domain.accounts.factors.requirement import SecondFactorRequirement, find_group_requirement
from domain.accounts.factors.second_factors import has_second_factor
from domain.accounts.sign_in.sessions import PROVIDER_FACTOR_METHODS
from web.extensions import db
from web.services import get_current_time, get_services
from web.settings.policies.accounts import build_second_factor_rule


def find_due_second_factor_requirement() -> SecondFactorRequirement | None:
    """Return the unmet second-factor requirement that already applies to the user, or None."""
    found = _find_unmet_requirement()
    return found if found is not None and found.begins <= get_current_time() else None


def find_upcoming_second_factor_requirement() -> SecondFactorRequirement | None:
    """Return the unmet second-factor requirement that will apply to the user later, or None."""
    found = _find_unmet_requirement()
    return found if found is not None and found.begins > get_current_time() else None


def _find_unmet_requirement() -> SecondFactorRequirement | None:
    """Return the earliest second-factor requirement that the signed-in user does not meet."""
    if g.get("asks_no_database") or not current_user.is_authenticated:
        return None
    if current_user.methods == PROVIDER_FACTOR_METHODS:
        return None  # The identity provider has already required a second factor.
    # Cache the result for this request, which may itself set up a second factor.
    if "unmet_requirement" not in g:
        g.unmet_requirement = _query_unmet_requirement()
    found: SecondFactorRequirement | None = g.unmet_requirement
    return found


def _query_unmet_requirement() -> SecondFactorRequirement | None:
    user_id, connections = current_user.id, get_services().connections
    rule = get_services().live_settings.get_derived_value(build_second_factor_rule)
    found = [find_group_requirement(user_id, connection=connections, now=get_current_time())]
    if rule.covers_user(is_admin=current_user.is_admin):
        lacks_one = not has_second_factor(user_id, session=db.session())
        found.append(rule.requirement if lacks_one else None)
    unmet = [each for each in found if each is not None]
    return min(unmet, key=lambda each: each.begins, default=None)
