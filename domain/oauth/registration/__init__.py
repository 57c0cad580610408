"""Dynamic client registration (RFC 7591, RFC 7592)."""
