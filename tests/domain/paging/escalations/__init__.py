"""What escalations decide without a database."""
