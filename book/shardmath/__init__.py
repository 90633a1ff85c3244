"""Shardmath: the arithmetic of scaling models, executable."""

__version__ = "0.1.0"
