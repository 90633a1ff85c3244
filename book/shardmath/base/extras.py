"""What an installation of the package alone lacks, and how to get it."""


def missing(what: str, error: ImportError) -> ModuleNotFoundError:
    """The error to raise where `what` needs something that only an extra installs.

    Args:
        what: the module that somebody imports.
        error: what Python said, which knows the name of the missing package.

    >>> print(missing("shardmath.draw.plots", ImportError("no", name="matplotlib")))
    shardmath.draw.plots needs matplotlib; to get it: pip install "shardmath[notebook]"
    """
    package = (error.name or "a package that is missing").partition(".")[0]
    wanted = 'pip install "shardmath[notebook]"'
    return ModuleNotFoundError(
        f"{what} needs {package}; to get it: {wanted}", name=error.name
    )
