"""Chips, the networks between them, meshes, and what limits one chip."""
