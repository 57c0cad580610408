"""Sign-in: limited attempts, second factors and browser sessions."""
