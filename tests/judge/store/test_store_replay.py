"""Which version of a problem `python -m judge.replay` judges by."""

from __future__ import annotations

from click.testing import CliRunner

from judge import replay
from tests.judge.store.conftest import PROBLEM, VERSION


def test_it_is_that_of_the_verdict_that_counts(store, queue, submit, verdict, tmp_path, monkeypatch):
    """Judging again by another version has failed since, and the row names that version. Neither was kept here, so the
    refusal says which one was looked for."""
    number, newer = submit(), "f" * 16
    queue.finish(queue.claim("w"), verdict)
    with store.write() as session:
        assert queue.rejudge(session, {PROBLEM: newer}, [number]) == 1
    queue.finish(queue.claim("w"), verdict | {"status": "system_error", "version": newer})
    monkeypatch.setenv("COURSE_DATA_DIR", str(tmp_path))
    told = CliRunner().invoke(replay.main, [str(number)])
    assert told.exit_code == 2
    assert f"{VERSION}: this version of the problem was not kept here" in told.output.replace("\n", "")
    assert newer not in told.output
