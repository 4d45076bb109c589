"""Runs problem 74: operations on a TableManager over a small page table. Requests go by names, since which free row is
handed out first is the submission's choice; of their rows only what was written is looked at."""

import torch


def run(submission, inputs):
    from minisgl.scheduler.table import (
        TableManager,
    )  # at the top it would be imported before the submission is there

    page_table = torch.full((inputs["rows"], inputs["max_seq_len"]), -1, dtype=torch.int32)
    manager = TableManager(inputs["max_running_reqs"], page_table)
    rows, last, available, errors = {}, {}, [], []
    tokens, written = {}, {}
    for number, (what, name, *arguments) in enumerate(inputs["ops"]):
        try:
            if what == "allocate":
                rows[name] = last[name] = int(manager.allocate())
                tokens[name], written[name] = 0, []
            elif what == "free":
                manager.free(last.get(name, 0))
                rows.pop(name, None)
            elif what == "write_prompt":
                manager.write_prompt(rows[name], torch.tensor(arguments[0], dtype=torch.int32))
                tokens[name] = len(arguments[0])
            else:
                first, pages = arguments
                pages = torch.tensor(pages, dtype=torch.int32)
                manager.write_pages(rows[name], first, pages, inputs["page_size"])
                written[name] += range(first, first + len(pages) * inputs["page_size"])
        except (RuntimeError, ValueError, IndexError, KeyError, NotImplementedError) as error:
            if isinstance(error, NotImplementedError):
                raise
            errors.append((number, type(error).__name__))
        available.append(int(manager.available_size))
    given = list(rows.values())
    return {
        "available": available,
        "errors": errors,
        "tokens": {name: manager.token_pool[row, : tokens[name]].clone() for name, row in rows.items()},
        "positions": {name: page_table[row][written[name]] for name, row in rows.items()},
        "rows_apart": len(set(given)) == len(given)
        and all(0 <= r < inputs["max_running_reqs"] for r in given),
    }
