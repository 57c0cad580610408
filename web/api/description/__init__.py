"""The OpenAPI description of the service, made of what its views say of themselves."""
