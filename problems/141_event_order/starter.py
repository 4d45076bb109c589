def step(device, batch, last):
    """Launch `batch` and return the tokens of `last`, list[int].

    batch: int, a batch's number, or None if there is nothing to launch;
    last: int or None, the batch launched before.
    device: .launch(n), .copy(n), .record(n), .wait(n), .read(n);
    its calls are recorded.

    Returns None if last is None.
    """
    raise NotImplementedError
