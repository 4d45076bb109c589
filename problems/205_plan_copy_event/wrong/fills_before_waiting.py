def run_batch(gpu, number, layers):
    gpu.fill(number)
    gpu.wait()
    gpu.plan()
    gpu.record()
    return [gpu.run(layer) for layer in range(layers)]
