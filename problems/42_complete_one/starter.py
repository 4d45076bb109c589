def complete_one(self) -> None:
    """After a forward: update self.cached_len and self.device_len,
    ints, in tokens.
    """
    raise NotImplementedError
