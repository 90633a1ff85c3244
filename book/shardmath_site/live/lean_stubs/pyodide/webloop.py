"""No event loop, because the page's Python only computes answers synchronously."""


def _initialize_event_loop():
    pass
