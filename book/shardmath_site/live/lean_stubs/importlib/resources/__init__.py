"""Reads data files of a package as text."""

from importlib import import_module


def files(package):
    return _Place(import_module(package).__path__[0])


class _Place:
    def __init__(self, path):
        self.path = path

    def joinpath(self, name):
        return _Place(f"{self.path}/{name}")

    def read_text(self, encoding="utf-8"):
        with open(self.path, encoding=encoding) as file:
            return file.read()
