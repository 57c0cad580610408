"""A project's alert integrations: their settings, keys, deliveries and test alerts."""
