"""OpenID Connect: signing keys, ID tokens and claims."""
