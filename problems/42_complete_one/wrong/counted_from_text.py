def complete_one(self) -> None:
    self.cached_len = len(self.input_ids)
    self.device_len = len(self.input_ids) + 1
