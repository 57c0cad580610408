"""What the owner of an application sees while it is being connected, and when it fails."""
