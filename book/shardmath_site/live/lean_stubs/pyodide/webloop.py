"""No event loop: whoever asks the page's Python waits for the answer."""


def _initialize_event_loop():
    pass
