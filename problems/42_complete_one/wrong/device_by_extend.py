def complete_one(self) -> None:
    extend_len = self.device_len - self.cached_len
    self.cached_len = self.device_len
    self.device_len += extend_len
