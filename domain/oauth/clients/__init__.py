"""Registered applications, their secrets and redirect URIs, and client authentication."""
