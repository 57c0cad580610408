"""Conventions of the REST API: pages, parameters, tokens."""
