"""Runs problem 181: the two parts of the answer are looked at one by one."""


def run(submission, inputs):
    answer = submission.whole_answer(inputs["prompt_tokens"], inputs["n"], inputs["pieces"])
    return {"choices": answer["choices"], "usage": answer["usage"]}
