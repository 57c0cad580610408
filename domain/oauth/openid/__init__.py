"""OpenID Connect: signing keys, ID tokens, claims."""
