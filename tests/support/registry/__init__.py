"""The container registry: the programs themselves, images, and what both send."""
