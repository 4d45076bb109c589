"""Programs that are alike: renaming hides nothing, solving the same short problem is no suspicion."""

from __future__ import annotations

from judge.packages import survey
from web.classes import similarity

P = survey().packages[200]
MINE = """
def flashinfer_metadata(reqs, page_table, page_size):
    starts = [0]
    pages = []
    tails = []
    for row, extend, length in reqs:
        count = (length + page_size - 1) // page_size
        tails.append(length - (count - 1) * page_size)
        step = 0
        while step < count:
            where = step * page_size
            pages.append(int(page_table[row][where]) // page_size)
            step += 1
        starts.append(starts[-1] + count)
    return starts, pages, tails
"""
RENAMED = "# my own work, honestly\n" + MINE.replace("starts", "begin").replace("pages", "blocks").replace(
    "step", "i"
).replace("where", "offset").replace("    pages", "    pages").replace("tails", "rest")
OTHER = """
def flashinfer_metadata(reqs, page_table, page_size):
    import torch
    lens = torch.tensor([r[2] for r in reqs])
    n = torch.div(lens + page_size - 1, page_size, rounding_mode="floor")
    ind = torch.cat([torch.zeros(1, dtype=torch.int32), n.cumsum(0).int()])
    idx = torch.cat([page_table[r[0], : r[2] : page_size] // page_size for r in reqs])
    return ind, idx, lens - (n - 1) * page_size
"""


def test_a_renamed_copy_is_told():
    found = similarity.pairs({"a": MINE, "b": RENAMED, "c": OTHER})
    assert [(p.one, p.two) for p in found] == [("a", "b")]
    assert found[0].score > 0.9
    assert not found[0].same


def test_a_copy_to_the_letter_comes_first():
    found = similarity.pairs({"a": MINE, "b": RENAMED, "c": MINE + "\n  \n", "d": OTHER})
    assert (found[0].one, found[0].two, found[0].same) == ("a", "c", True)
    assert {(p.one, p.two) for p in found} == {("a", "b"), ("a", "c"), ("b", "c")}


def test_what_much_of_the_class_has_is_no_suspicion():
    programs = {f"l{i}": MINE for i in range(9)}
    changed = {
        who: text.replace("step += 1", f"step += 1; x{i} = {i}")
        for i, (who, text) in enumerate(programs.items())
    }
    assert similarity.pairs(changed) == []


def test_starter_and_reference_are_no_suspicion():
    programs = {"a": P.starter, "b": P.starter, "c": P.solution + "\nx = 1", "d": P.solution + "\ny = [2]"}
    assert similarity.pairs(programs, P.starter, own=[P.solution]) == []


def test_a_comment_of_both_is_told():
    line = "    # here one has to round up, see the drawing from Tuesday\n"
    found = similarity.pairs(
        {"a": line + OTHER, "b": MINE.replace("    pages = []\n", line + "    pages = []\n")}
    )
    assert [(p.letters, p.same) for p in found] == [(1, False)]


def test_what_is_no_python_is_compared_by_words():
    similarity.pairs({"a": "((((", "b": "def f(:\n\x00", "c": "", "d": "'''"})


def test_the_page_shows_the_pair_and_leads_to_both(school, assignment, judged, store):
    from sqlalchemy import update

    from judge.store import Submission

    one, two = judged("u2", 200), judged("u3", 200)
    with store.write() as session:
        session.execute(update(Submission).values(source=MINE.encode()))
    page = school.teacher.get(f"{assignment}/alike/200").text
    assert "the same to the letter" in page
    assert f"/200/{one}" in page
    assert f"/200/{two}" in page
    assert "No two are more alike" in school.teacher.get(f"{assignment}/alike/40").text
    assert school.teacher.get(f"{assignment}/alike/30").status_code == 404
    assert school.ada.get(f"{assignment}/alike/200").status_code == 403
    assert school.outsider.get(f"{assignment}/alike/200").status_code == 404
