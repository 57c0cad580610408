"""Reads exports of other on-call tools and plans what to create from them."""
