def run_batch(gpu, number, layers):
    """Outputs of the layers of batch `number`, a list.
    gpu: fill(number), plan(), run(layer), record(), wait().
    """
    raise NotImplementedError
