"""Reads exports of other on-call tools, and builds import plans from the exports."""
