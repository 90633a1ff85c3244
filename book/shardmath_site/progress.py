"""The reader's progress: what the browser keeps, on every page."""

FIRST = 100  # other scripts have 500: they find what is kept when they run


def setup(app):
    """Load the store before all other scripts."""
    app.add_js_file("kept.js", priority=FIRST)
