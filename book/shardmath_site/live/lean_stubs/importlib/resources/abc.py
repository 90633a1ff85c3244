"""Empty. importlib.abc imports it, but only loaders use it."""
