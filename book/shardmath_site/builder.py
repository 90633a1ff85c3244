"""Where pages lie: the front page, which is written in ``book/``, is the site's top."""

from sphinx.builders.html import StandaloneHTMLBuilder


class Builder(StandaloneHTMLBuilder):
    """Sphinx's own, but for the place of the root document and the search."""

    search = False  # search.py has a better one

    def get_target_uri(self, docname, typ=None):
        """The address of a document from the site's top."""
        return super().get_target_uri(self._place(docname), typ)

    def get_outfilename(self, pagename):
        """The file that a page is written to."""
        return super().get_outfilename(self._place(pagename))

    def _place(self, docname):
        return "index" if docname == self.config.root_doc else docname


def setup(app):
    """Build pages of HTML so."""
    app.add_builder(Builder, override=True)
