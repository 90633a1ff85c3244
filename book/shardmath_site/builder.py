"""Puts pages in their places, and rebuilds everything after an interrupted build.

The front page, whose source is in ``book/``, becomes the top of the site. A page is
written before the files that it refers to, such as the first answers of its figures. If
a build ends in between, the page looks up to date, and these files would never be
written. So each build writes a marker at its end. If the marker is missing, the next
build writes all pages.
"""

import shutil
from collections.abc import Iterable
from pathlib import Path

from sphinx.builders.html import StandaloneHTMLBuilder

FINISHED = ".finished"  # in the folder of the site
KEPT = ("live", "cards")  # under _static; files in them are assumed to be complete


class Builder(StandaloneHTMLBuilder):
    """Sphinx's builder, with another place for the root document and without search."""

    search = False  # search.py adds a better one

    def get_target_uri(self, docname, typ=None):
        """The address of a document from the site's top."""
        return super().get_target_uri(self._place(docname), typ)

    def get_outfilename(self, pagename):
        """The file that a page is written to."""
        return super().get_outfilename(self._place(pagename))

    def get_outdated_docs(self) -> Iterable[str]:
        """The documents to write, which are all if the last build was interrupted."""
        if self.app.shardmath_was_finished:
            return super().get_outdated_docs()
        return self.env.found_docs

    def _place(self, docname):
        return "index" if docname == self.config.root_doc else docname


def _begin(app):
    if app.builder.format != "html":
        return
    out = Path(app.outdir)
    app.shardmath_was_finished = (out / FINISHED).exists()
    (out / FINISHED).unlink(missing_ok=True)
    if not app.shardmath_was_finished:
        for name in KEPT:
            shutil.rmtree(out / "_static" / name, ignore_errors=True)


def _finish(app, exception):
    if exception is None and app.builder.format == "html":
        Path(app.outdir, FINISHED).touch()


def setup(app):
    """Use this builder for HTML. Its marker is written after all other handlers."""
    app.add_builder(Builder, override=True)
    app.connect("builder-inited", _begin)
    app.connect("build-finished", _finish, priority=10_000)
