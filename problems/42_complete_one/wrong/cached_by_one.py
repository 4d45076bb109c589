def complete_one(self) -> None:
    self.cached_len += 1
    self.device_len += 1
