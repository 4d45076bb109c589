"""Small helpers that belong to no part of the engine in particular. Imported by module, not from here."""
