"""`escape`, without the table of HTML's 2,231 named characters."""

_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
_QUOTES = {'"': "&quot;", "'": "&#x27;"}


def escape(s, quote=True):
    return s.translate(str.maketrans(_ENTITIES | (_QUOTES if quote else {})))
