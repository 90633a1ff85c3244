"""Compiled programs as referees: compares XLA's collectives with predicted ones."""
