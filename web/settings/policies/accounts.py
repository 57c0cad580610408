"""Policies for passwords, sign-in and sign-up."""

from datetime import date, timedelta

from domain.accounts.factors.requirement import SecondFactorRule
from domain.accounts.passwords import HashCost, PasswordRules
from domain.accounts.sign_in.actions import SignInLimits
from domain.accounts.sign_up import SIGN_UP_BY_DOMAIN, SIGN_UP_OFF, SignUpPolicy
from web.settings.environment import Settings


def build_password_rules(settings: Settings) -> PasswordRules:
    """Return the minimum length and the hash parameters of passwords."""
    return PasswordRules(minimum=settings.password_min_length, cost=build_hash_cost(settings))


def build_hash_cost(settings: Settings) -> HashCost:
    """Return the Argon2id parameters under these settings."""
    return HashCost(
        memory_kib=settings.password_hash_memory_kib, passes=settings.password_hash_passes
    )


def build_second_factor_rule(current: Settings) -> SecondFactorRule:
    """Return the rule that determines which users must have a second factor."""
    begins = current.second_factor_required_from
    return SecondFactorRule(
        required_of=current.second_factor_required,
        begins=date.fromisoformat(begins) if begins else None,
    )


def build_sign_up_policy(current: Settings) -> SignUpPolicy:
    """Return the policy for sign-ups.

    Sign-up is off without a mail server, or if it is limited to domains and no domains are set.
    """
    domains = frozenset(current.sign_up_email_domains.split(", ")) - {""}
    works = bool(current.mail_url) and (bool(domains) or current.sign_up != SIGN_UP_BY_DOMAIN)
    return SignUpPolicy(
        mode=current.sign_up if works else SIGN_UP_OFF,
        domains=domains,
        takes_invited=current.invitations_create_accounts,
    )


def build_sign_in_limits(current: Settings) -> SignInLimits:
    """Return the limits for sign-in attempts per account and per IP address."""
    return SignInLimits(
        per_account=current.sign_in_attempts_per_account,
        per_address=current.sign_in_attempts_per_address,
        second_factor_per_account=current.second_factor_attempts_per_account,
        window=timedelta(seconds=current.sign_in_attempts_window_seconds),
        cost=build_hash_cost(current),
    )
