"""What tests ask of passwords: hashes that cost next to nothing."""

from domain.accounts.passwords import HashCost, PasswordRules

#: For people whom nobody attacks, and for apps in the process of a test. No service may be set to
#: this: at the first sign-in it hashes the password anew at its own cost.
QUICK = HashCost(memory_kib=64, passes=1)
RULES = PasswordRules(minimum=12, cost=QUICK)
#: The least cost that an operator may choose, for a running service.
ENVIRONMENT = {"PASSWORD_HASH_MEMORY_KIB": "19456", "PASSWORD_HASH_PASSES": "2"}
