"""Sign-in through OpenID Connect providers and GitHub, with Gatebell as their client."""
