def run_batch(gpu, number, layers):
    gpu.wait()
    gpu.fill(number)
    gpu.plan()
    gpu.record()
    return [gpu.run(layer) for layer in range(layers)]
