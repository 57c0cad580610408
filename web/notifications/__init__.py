"""What pages, API and commands share about contacts, channels and pages."""
