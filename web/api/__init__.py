"""Conventions of the REST API, such as pagination, parameters and tokens."""
