"""Runs problem 62: hands out the tensors one by one, and notes how many had been taken when each result came."""


def run(submission, inputs):
    read = 0

    def stream():
        nonlocal read
        for name, tensor in zip(inputs["names"], inputs["tensors"], strict=True):
            read += 1
            yield name, tensor

    names, tensors, before = [], [], []
    for name, tensor in submission.merge_stream(stream()):
        names.append(name)
        tensors.append(tensor)
        before.append(read)
    return {"names": names, "tensors": tensors, "read_before": before}
