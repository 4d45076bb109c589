"""`python -m judge.replay ID`: judge a stored submission again, by the problem version and seed that it was judged by, and
say whether the verdict is the same. Changes nothing in the store."""

from __future__ import annotations

from typing import Any

import click

from judge.archive import Archive
from judge.judge import Judge
from judge.packages import PackageError
from judge.sitting import Which
from judge.store import Store, StoreSettings, Submission
from judge.store.tables import Judgement


def essence(verdict: dict[str, Any]) -> dict[str, Any]:
    """What a replay must reproduce: everything but times, tier and versions."""
    return {
        "status": verdict["status"],
        "passed": verdict["passed"],
        "total": verdict["total"],
        "cases": [
            {k: c.get(k) for k in ("name", "group", "status", "message", "got", "mismatches")}
            for c in verdict["cases"]
        ],
        "diagnosis": verdict["diagnosis"],
        "counterexample": verdict["counterexample"],
    }


def differences(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    """Names of what a replay gives differently."""
    a, b = essence(old), essence(new)
    return [name for name in a if a[name] != b[name]]


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("number", type=int)
def main(number: int) -> None:
    """Replay submission NUMBER. Exit status: 0 the same verdict, 1 another, 2 it cannot be replayed."""
    settings = StoreSettings()
    store = Store(settings.url)
    with store.read() as session:
        row = session.get(Submission, number)
        if row is None or row.current_judgement is None:
            raise click.UsageError(f"there is no submission {number} with a verdict")
        judgement = session.get(Judgement, row.current_judgement)
        assert judgement is not None
        old, source, seed = judgement.verdict, row.source, row.seed
        version = str(old["version"])  # the row names the one of the latest attempt, which may have failed
        which: Which = "public" if row.public_only else "all"
    store.close()
    try:
        package = Archive(settings.packages).load(version)
    except PackageError as error:
        raise click.UsageError(str(error)) from None
    with Judge() as judge:
        new = judge.judge(package, source, seed, which=which).to_json()
    found = differences(old, new)
    click.echo(
        f"submission {number}, problem {package.id}, version {version}: {old['status']} then, {new['status']} now"
    )
    if found:
        click.echo(f"different: {', '.join(found)}")
        raise SystemExit(1)
    click.echo("the same verdict, case by case")


if __name__ == "__main__":
    main()
