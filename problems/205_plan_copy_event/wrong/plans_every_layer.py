def run_batch(gpu, number, layers):
    gpu.wait()
    gpu.fill(number)
    outputs = []
    for layer in range(layers):
        gpu.plan()
        gpu.record()
        outputs.append(gpu.run(layer))
    return outputs
