"""Runs Schemathesis with requests that it generates from the OpenAPI description."""
