"""Where pages lie, and that a build which was cut short is done again.

The front page, which is written in ``book/``, is the site's top. A page is written
before the files that it names, such as the first answers of its figures. Where a build
ends in between, the page looks finished, and these files would never be made. So each
build leaves a marker at its very end, and where it is missing the next one writes all.
"""

import shutil
from collections.abc import Iterable
from pathlib import Path

from sphinx.builders.html import StandaloneHTMLBuilder

FINISHED = ".finished"  # in the folder of the site
KEPT = ("live", "cards")  # under _static: what is there is otherwise taken as whole


class Builder(StandaloneHTMLBuilder):
    """Sphinx's own, but for the place of the root document and the search."""

    search = False  # search.py has a better one

    def get_target_uri(self, docname, typ=None):
        """The address of a document from the site's top."""
        return super().get_target_uri(self._place(docname), typ)

    def get_outfilename(self, pagename):
        """The file that a page is written to."""
        return super().get_outfilename(self._place(pagename))

    def get_outdated_docs(self) -> Iterable[str]:
        """What has to be written: everything, where the last build was cut short."""
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
    """Build pages of HTML so; the marker comes after all that others do at the end."""
    app.add_builder(Builder, override=True)
    app.connect("builder-inited", _begin)
    app.connect("build-finished", _finish, priority=10_000)
