"""Records what a checkout answers on all faces, and compares two recordings (see `record.py`)."""
