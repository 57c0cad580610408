"""Authentication of API requests with bearer tokens or with tokens bound to a key (DPoP)."""
