"""User consent: approved scopes, authorized applications and pushed authorization requests."""
