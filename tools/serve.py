"""Serve the built site on this machine: python tools/serve.py FOLDER PORT."""

import functools
import sys
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer


class Handler(SimpleHTTPRequestHandler):
    def end_headers(self) -> None:
        """What lies under a digest of its content is kept by the browser for good."""
        if "/_static/live/" in self.path:
            self.send_header("Cache-Control", "max-age=31536000, immutable")
        super().end_headers()


def main(folder: str, port: int) -> None:
    handler = functools.partial(Handler, directory=folder)
    try:
        server = ThreadingHTTPServer(("127.0.0.1", port), handler)
    except OSError as error:
        sys.exit(
            f"shardmath: port {port} cannot be used ({error.strerror}). "
            f"Name another one: make serve PORT={port + 1}"
        )
    print(f"The book is at http://127.0.0.1:{port}/ (Ctrl-C stops it).", flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        server.server_close()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
