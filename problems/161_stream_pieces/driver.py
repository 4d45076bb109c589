"""Runs problem 161 with a decoder over the case's vocabulary."""


def run(submission, inputs):
    pieces = [bytes(piece) for piece in inputs["vocabulary"]]

    def decode(ids):
        return b"".join(pieces[i] for i in ids).decode(errors="replace").removeprefix(" ")

    return {"pieces": submission.stream(decode, list(inputs["ids"]))}
