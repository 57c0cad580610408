"""What the settings ask of passwords, in the words of the domain."""

from domain.accounts.passwords import HashCost, PasswordRules
from web.settings.reader import Settings


def password_rules(settings: Settings) -> PasswordRules:
    """Return the rules for passwords under these settings."""
    return PasswordRules(minimum=settings.password_min_length, cost=hash_cost(settings))


def hash_cost(settings: Settings) -> HashCost:
    """Return what one guess at a password costs under these settings."""
    return HashCost(
        memory_kib=settings.password_hash_memory_kib, passes=settings.password_hash_passes
    )
