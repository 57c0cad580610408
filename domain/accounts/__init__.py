"""User accounts: creation, authentication, roles and administration."""
