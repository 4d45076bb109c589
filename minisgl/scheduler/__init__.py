"""Who runs next, and where each request's tokens are. Imported by module."""
