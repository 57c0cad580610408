"""Password rules of tests, with cheap hashes."""

from domain.accounts.passwords import HashCost, PasswordRules

#: Cost for users of tests and for apps in the process of a test. No service may use it, since the
#: first sign-in hashes the password again at the service's own cost.
QUICK = HashCost(memory_kib=64, passes=1)
RULES = PasswordRules(minimum=12, cost=QUICK)
#: Minimum cost that an operator may configure, for a running service.
ENVIRONMENT = {"PASSWORD_HASH_MEMORY_KIB": "19456", "PASSWORD_HASH_PASSES": "2"}
