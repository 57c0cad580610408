"""Binds the authorization server of the domain to Flask."""
