"""Nothing: Pyodide looks for it at its start, and the page's Python never waits."""
