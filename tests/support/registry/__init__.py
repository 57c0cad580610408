"""The container registry: real programs, images, and their requests."""
