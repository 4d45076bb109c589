def complete_one(self) -> None:
    self.device_len += 1
    self.cached_len = self.device_len
