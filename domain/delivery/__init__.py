"""Messages to other systems: emails, signed requests, webhooks and audit streams."""
