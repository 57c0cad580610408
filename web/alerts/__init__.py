"""Functions that several views of alerts share."""
