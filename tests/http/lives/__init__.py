"""The whole life of each resource through each interface."""
