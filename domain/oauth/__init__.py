"""The authorization server (RFC 6749 and related), independent of the web framework."""
