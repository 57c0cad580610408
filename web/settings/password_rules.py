"""The password policy from the settings."""

from domain.accounts.passwords import HashCost, PasswordRules
from web.settings.reader import Settings


def password_rules(settings: Settings) -> PasswordRules:
    """Return the rules for passwords under these settings."""
    return PasswordRules(minimum=settings.password_min_length, cost=hash_cost(settings))


def hash_cost(settings: Settings) -> HashCost:
    """Return the Argon2id parameters under these settings."""
    return HashCost(
        memory_kib=settings.password_hash_memory_kib, passes=settings.password_hash_passes
    )
