"""What the engine's processes tell one another. Imported by module: each names who receives it."""
