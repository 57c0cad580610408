"""Schemas of API requests and responses, one file per resource."""
