"""Too many, too often, no room: each is told, and what was written is kept."""

from __future__ import annotations

import re

import pytest
from sqlalchemy import text

from judge.store import Queue


def test_more_than_may_wait_is_refused_with_the_text_kept(app, signed_in):
    ada = signed_in("ada")
    services = app.extensions["course"]
    object.__setattr__(services, "queue", Queue(services.store, most_queued=2))
    for _ in range(2):
        assert ada.post("/problems/40/submissions", {"source": "x"}, page="/problems/40").status_code == 303
    answer = ada.post("/problems/40/submissions", {"source": "my_long_work = 1"}, page="/problems/40")
    assert answer.status_code == 429
    assert "2 submissions of yours are waiting" in answer.text
    assert "my_long_work = 1" in answer.text
    ben = signed_in("ben")
    assert ben.post("/problems/40/submissions", {"source": "x"}, page="/problems/40").status_code == 303


def test_a_flood_from_one_account_ends_in_429_with_what_is_left(signed_in):
    ada = signed_in("ada")
    data = {"csrf_token": ada.csrf("/problems/40"), "source": "x"}
    answers = [
        ada.client.post(
            "/problems/40/submissions",
            base_url="http://course.example.edu:8000",
            data=data,
            headers={
                "Origin": "http://course.example.edu:8000",
                "Accept": "application/json",
                "Accept-Language": "en",
            },
        )
        for _ in range(61)
    ]
    assert answers[0].headers["X-RateLimit-Remaining"] == "59"
    assert [a.status_code for a in answers[:20]] == [201] * 20
    assert answers[60].status_code == 429
    told = re.search(r"At most 60 in 60 seconds; it goes on in (\d+) seconds", answers[60].json["error"])
    assert told, answers[60].json
    assert 1 <= int(told[1]) <= 61


@pytest.mark.parametrize("accept", ["text/html", "application/json"])
def test_a_full_disk_is_told(app, signed_in, store, accept):
    ada = signed_in("ada")
    with store.write() as session:
        pages = session.execute(text("PRAGMA page_count")).scalar_one()

    from sqlalchemy import event

    @event.listens_for(store._write, "begin")
    def _small(connection):
        connection.exec_driver_sql(f"PRAGMA max_page_count={pages}")

    token = ada.csrf("/problems/40")
    answer = ada.client.post(
        "/problems/40/submissions",
        base_url="http://course.example.edu:8000",
        data={"csrf_token": token, "source": "x = 1  # " + "a" * 60_000},
        headers={"Origin": "http://course.example.edu:8000", "Accept": accept, "Accept-Language": "en"},
    )
    assert answer.status_code == 507
    assert "disk is full" in answer.text
    assert ada.get("/problems/40").status_code == 200, "reading goes on"
