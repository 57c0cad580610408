"""Whether the signed-in user lacks a second factor that the instance requires."""

from datetime import date

from flask import g
from flask_login import current_user

from domain.accounts.factors.second_factors import has_second_factor
from domain.accounts.signing_in.sessions import BY_PROVIDER_WITH_FACTOR
from web.extensions import db
from web.services import now, services
from web.settings.policies import second_factor_rule


def must_set_up_second_factor() -> bool:
    """Return whether the signed-in user has to set one up before anything else."""
    return _lacks_one() and services().live_settings.derived(second_factor_rule).holds(now().date())


def second_factor_wanted_from() -> date | None:
    """Return the day from which the signed-in user needs a second factor, if it is to come."""
    rule = services().live_settings.derived(second_factor_rule)
    return rule.begins if _lacks_one() and not rule.holds(now().date()) else None


def _lacks_one() -> bool:
    if not current_user.is_authenticated:
        return False
    rule = services().live_settings.derived(second_factor_rule)
    if not rule.names(is_admin=current_user.is_admin):
        return False
    if current_user.methods == BY_PROVIDER_WITH_FACTOR:
        return False  # the provider has asked for one, and is trusted in that
    # Asked once for a request: it may be a page that sets one up.
    if "has_second_factor" not in g:
        g.has_second_factor = has_second_factor(current_user.id, session=db.session())
    return not g.has_second_factor
