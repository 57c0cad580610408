"""Creation, change and deletion of each resource through each interface."""
