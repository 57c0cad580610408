"""Signing in through OpenID Connect providers and GitHub: Gatebell as their client."""
