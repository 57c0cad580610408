"""The authorization server, free of any web framework: RFC 6749 and its relatives."""
