"""What the service keeps of calls, and what it makes of that."""
