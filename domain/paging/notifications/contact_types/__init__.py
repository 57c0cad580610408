"""Contact types, each in its own module, which parse addresses and send messages."""
