def complete_one(self) -> None:
    self.cached_len = self.device_len
    self.device_len += 1
    self.input_ids = self.input_ids.new_zeros(len(self.input_ids) + 1)
