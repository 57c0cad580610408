"""Signing in through OpenID Connect providers: Gatebell as their relying party."""
