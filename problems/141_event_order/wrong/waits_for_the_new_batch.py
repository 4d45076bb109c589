def step(device, batch, last):
    if batch is not None:
        device.launch(batch)
        device.copy(batch)
        device.record(batch)
    if last is None:
        return None
    device.wait(last if batch is None else batch)
    return device.read(last)
