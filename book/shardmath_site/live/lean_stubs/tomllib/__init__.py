"""TOML that the build has rewritten as JSON."""

from json import loads

__all__ = ["loads"]
