"""Text to tokens and tokens to text, in a process of its own beside the scheduler's. Imported by module."""
