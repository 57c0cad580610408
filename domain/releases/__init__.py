"""What changes from release to release; pure values."""
