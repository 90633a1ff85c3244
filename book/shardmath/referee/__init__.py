"""Compiled programs as referees: XLA's collectives, compared with predicted ones."""
