"""The batches that `measure_plans.py` plans: every branch of every planner, the same ones each time."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Case:
    """A batch in the terms of a wrapper's plan: tokens of q and KV for each request."""

    qo: tuple[int, ...]
    kv: tuple[int, ...]
    heads: tuple[int, int]
    page: int
    graph: bool = False
    causal: bool = False
    window: int = -1
    fixed: int | None = None
    unsplit: bool = False
    uniform: int | None = None


def cases(path: str, window: bool, count: int) -> list[Case]:
    """Batches that reach every branch: one long request, many, empty ones, equal ones, far too many."""
    rng = random.Random(20261129)
    found: list[Case] = []
    shapes: list[Callable[[], list[int]]] = [
        lambda: [rng.randint(1, 60000)],
        lambda: [2048] * 64,
        lambda: [rng.randint(0, 8000) for _ in range(rng.randint(2, 40))],
        lambda: [rng.choice([0, 1, 17, 5000, 30000]) for _ in range(rng.randint(2, 12))],
        lambda: [rng.randint(1, 300) for _ in range(rng.randint(100, 300))],
        lambda: [rng.choice([512, 1024]) for _ in range(rng.randint(17, 60))],
    ]
    for i in range(count):
        kv = shapes[i % len(shapes)]()
        decoding = path in ("dec", "tc")
        if decoding:
            qo = [1] * len(kv)
        elif i % 4 == 3:
            qo = [rng.choice([1, 1, 1, 200]) for _ in kv]
        else:
            qo = [rng.randint(0, max(1, n // rng.choice([1, 4, 40]))) if n else 0 for n in kv]
        if not sum(qo):
            qo[0] = 1
        case = Case(
            qo=tuple(qo),
            kv=tuple(kv),
            heads=rng.choice([(32, 8), (8, 8), (16, 1), (32, 4), (8, 1), (24, 8), (16, 8)]),
            page=rng.choice([1, 16, 64]),
            graph=path in ("dec", "tc", "fa2") and i % 3 == 2,
            causal=not decoding and i % 2 == 0,
            window=rng.choice([0, 100, 5000]) if window else -1,
        )
        if path in ("tc", "fa2") and i % 7 == 5:
            case = replace(case, fixed=rng.choice([1, 8, 64]), graph=False)
        if path in ("tc", "fa2") and i % 7 == 6:
            case = replace(case, unsplit=True)
        if path == "fa2" and i % 9 == 8:
            case = replace(case, qo=(4,) * len(kv), kv=tuple(max(4, n) for n in kv), uniform=4, graph=True)
        found.append(case)
    return found
