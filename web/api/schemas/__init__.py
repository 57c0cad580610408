"""What the API takes and returns: one file a resource."""
