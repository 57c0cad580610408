"""What tests ask of passwords: hashes at the least cost that an operator may choose."""

from domain.accounts.passwords import HashCost, PasswordRules

CHEAPEST = HashCost(memory_kib=19_456, passes=2)
RULES = PasswordRules(minimum=12, cost=CHEAPEST)
#: For people whom nobody attacks: no service may be set to this, and at the first sign-in it hashes
#: the password anew at its own cost.
QUICK = PasswordRules(minimum=12, cost=HashCost(memory_kib=64, passes=1))
#: The same for a service of its own.
ENVIRONMENT = {
    "PASSWORD_HASH_MEMORY_KIB": str(CHEAPEST.memory_kib),
    "PASSWORD_HASH_PASSES": str(CHEAPEST.passes),
}
