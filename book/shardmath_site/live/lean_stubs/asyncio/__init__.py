"""Empty. Pyodide imports it at its start, but the page's Python never uses it."""
