"""Lists of alerts, with filters, sort orders, search, counts and exports."""
