"""Serves the built site on this machine: python tools/serve.py FOLDER PORT."""

import functools
import gzip
import io
import sys
from email.utils import formatdate
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

SHORTER = {".css", ".html", ".js", ".json", ".mjs", ".svg", ".txt", ".wasm", ".xml"}


@functools.lru_cache(maxsize=512)
def compressed(path: Path, changed: float) -> bytes:
    """The file compressed by gzip, computed once until it has `changed`."""
    return gzip.compress(path.read_bytes(), 6)


class Handler(SimpleHTTPRequestHandler):
    """Compresses files, as web hosts do. The page's Python then has 3.5 MB."""

    def send_head(self):
        """Send the headers, and return the file to send after them."""
        path = Path(self.translate_path(self.path))
        if path.is_dir() and self.path.endswith("/"):
            path /= "index.html"
        wanted = "gzip" in self.headers.get("Accept-Encoding", "")
        is_known = "If-Modified-Since" in self.headers  # the browser may have the file
        if not wanted or is_known or path.suffix not in SHORTER or not path.is_file():
            return super().send_head()
        changed = path.stat().st_mtime
        content = compressed(path, changed)
        self.send_response(200)
        self.send_header("Content-Type", self.guess_type(str(path)))
        self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Last-Modified", formatdate(changed, usegmt=True))
        self.send_header("Vary", "Accept-Encoding")
        self.end_headers()
        return io.BytesIO(content)

    def end_headers(self) -> None:
        """Let browsers cache files permanently whose names hold a digest of them."""
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
