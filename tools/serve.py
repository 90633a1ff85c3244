"""Serve the built site on this machine: python tools/serve.py FOLDER PORT."""

import functools
import sys
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer


def main(folder: str, port: int) -> None:
    handler = functools.partial(SimpleHTTPRequestHandler, directory=folder)
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
