"""The kinds of fields and the bases of types that all faces share."""
