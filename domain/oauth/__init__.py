"""The authorization server (RFC 6749 and related RFCs), independent of the web framework."""
