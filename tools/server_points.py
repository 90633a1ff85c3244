"""Writes the measured servers that live figures show, from the book's rows.

    python tools/server_points.py

A page can't read and derive all rows, so it reads the result from
``measured/server_points.csv``. A test checks this file against the rows.
"""

from pathlib import Path

from shardmath.measured import server_points

HEAD = """\
# Measured servers with both of their times, and what is predicted of the same servers.
# Written by tools/server_points.py from serving.csv and the three fitted numbers:
# `ServerPoint` in server_points.py says what each column holds. Seconds.
"""


def table() -> str:
    """The text of the file, derived from the rows."""
    columns = ",".join(server_points.ServerPoint._fields)
    return f"{HEAD}{columns}\n{server_points.text(server_points.derived())}"


if __name__ == "__main__":
    path = Path(server_points.__file__).with_suffix(".csv")
    path.write_text(table(), "utf-8")
