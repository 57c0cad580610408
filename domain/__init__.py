"""The rules of the service, independent of Flask."""
