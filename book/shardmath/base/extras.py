"""Packages that only some modules need, and how to install them."""


def missing(what: str, error: ImportError) -> ModuleNotFoundError:
    """The error to raise if `what` needs a package that only an extra installs.

    Args:
        what: the module that was imported.
        error: Python's error, which holds the name of the missing package.

    >>> print(missing("shardmath.draw.plots", ImportError("no", name="matplotlib")))
    shardmath.draw.plots needs matplotlib; to get it: pip install "shardmath[notebook]"
    """
    package = (error.name or "a package that is missing").partition(".")[0]
    wanted = 'pip install "shardmath[notebook]"'
    return ModuleNotFoundError(
        f"{what} needs {package}; to get it: {wanted}", name=error.name
    )
