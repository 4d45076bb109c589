"""Layers that carry weights. Imported by module, so that a layer drags in only what it needs."""
