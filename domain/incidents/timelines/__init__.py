"""What happened to an alert or an incident, in one list."""
