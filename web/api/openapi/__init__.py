"""OpenAPI description of the service, generated from its views."""
