"""The business rules of the service, independent of Flask."""
