"""Sign-in with passwords, passkeys, second factors and providers."""
