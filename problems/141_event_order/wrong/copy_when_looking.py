def step(device, batch, last):
    if batch is not None:
        device.launch(batch)
    if last is None:
        return None
    device.copy(last)
    device.record(last)
    device.wait(last)
    return device.read(last)
