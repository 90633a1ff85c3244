"""The site's Sphinx extension, which adds to Jupyter Book and its theme."""

import hashlib
from pathlib import Path

from . import (
    builder,
    exercises,
    folding,
    formulas,
    front,
    glossary,
    guesses,
    hardware,
    kickers,
    map,
    notes,
    numbering,
    pages,
    policy,
    progress,
    returning,
    runs,
    search,
    sharing,
    trim,
    trying,
    units,
    zooming,
)
from .render import setup_live

HERE = Path(__file__).parent


def setup(app):
    """Register everything that the site adds to Jupyter Book and its theme."""
    # A digest of this package and of _static, so a change rebuilds all pages.
    app.add_config_value("shardmath_site_digest", "", "env")
    app.connect("config-inited", _configure)
    builder.setup(app)
    exercises.setup(app)
    folding.setup(app)
    formulas.setup(app)
    front.setup(app)
    glossary.setup(app)
    guesses.setup(app)
    hardware.setup(app)
    kickers.setup(app)
    map.setup(app)
    notes.setup(app)
    numbering.setup(app)
    pages.setup(app)
    policy.setup(app)
    progress.setup(app)
    returning.setup(app)
    runs.setup(app)
    search.setup(app)
    sharing.setup(app)
    trim.setup(app)
    trying.setup(app)
    units.setup(app)
    zooming.setup(app)
    setup_live(app)
    return {"parallel_read_safe": True, "parallel_write_safe": False}


def _configure(app, config):
    config.templates_path.insert(0, str(HERE / "templates"))
    files = sorted([*HERE.glob("*.*"), *HERE.parent.glob("_static/*.*")])
    code = b"".join(path.read_bytes() for path in files)
    config.shardmath_site_digest = hashlib.sha256(code).hexdigest()[:12]
