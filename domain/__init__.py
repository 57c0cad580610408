"""What the service does; it runs without Flask."""
