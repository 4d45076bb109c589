"""Runs problem 161 with a decoder over the case's tokens; a token's id is its number in the answer."""


def run(submission, inputs):
    pieces = [bytes(token) for token in inputs["tokens"]]

    def decode(ids):
        return b"".join(pieces[i] for i in ids).decode(errors="replace").removeprefix(" ")

    return {"pieces": submission.stream(decode, list(range(len(pieces))))}
