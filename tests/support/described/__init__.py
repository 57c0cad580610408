"""Requests made from the description of the interfaces, by Schemathesis."""
