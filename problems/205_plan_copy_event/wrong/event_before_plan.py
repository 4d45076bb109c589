def run_batch(gpu, number, layers):
    gpu.wait()
    gpu.fill(number)
    gpu.record()
    gpu.plan()
    return [gpu.run(layer) for layer in range(layers)]
