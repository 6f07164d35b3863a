"""The service under load, beside a plain handler."""
