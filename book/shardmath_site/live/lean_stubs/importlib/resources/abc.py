"""Nothing: importlib.abc imports it, for those who write loaders."""
