"""Compiled programs as referees: what XLA sends is held against what is predicted."""
