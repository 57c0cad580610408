"""What the views of the container registry share."""
