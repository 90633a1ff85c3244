"""The folders for packages, which the page never installs."""

from site import getsitepackages


class _Folder:
    def __init__(self, path):
        self.path = path

    def __str__(self):
        return self.path


SITE_PACKAGES, DSO_DIR = _Folder(getsitepackages()[0]), _Folder("/usr/lib")


def init_loaded_packages():
    pass
