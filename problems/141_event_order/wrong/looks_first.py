def step(device, batch, last):
    tokens = None
    if last is not None:
        device.wait(last)
        tokens = device.read(last)
    if batch is not None:
        device.launch(batch)
        device.copy(batch)
        device.record(batch)
    return tokens
