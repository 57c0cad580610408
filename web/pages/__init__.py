"""What templates and lists of pages share."""
