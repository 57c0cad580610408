"""Contact types, which parse addresses and send messages. Each type has its own module."""
