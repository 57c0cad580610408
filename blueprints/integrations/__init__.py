"""Pages for a project's alert integrations: settings, keys, deliveries and test alerts."""
