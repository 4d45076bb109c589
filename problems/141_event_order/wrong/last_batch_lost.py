def step(device, batch, last):
    if batch is None:
        return None
    if batch is not None:
        device.launch(batch)
        device.copy(batch)
        device.record(batch)
    if last is None:
        return None
    device.wait(last)
    return device.read(last)
