"""Second factors: authenticator apps, recovery codes, passkeys."""
