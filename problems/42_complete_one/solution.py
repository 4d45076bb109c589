def complete_one(self) -> None:
    self.cached_len = self.device_len
    self.device_len += 1
