"""A project's webhooks: their settings and their deliveries."""
