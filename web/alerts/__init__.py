"""What several views of alerts share."""
