"""Statements say what an answer consists of: whatever is compared has a name that the learner has read."""

import re

import pytest

from judge.packages import survey

PACKAGES = list(survey().packages.values())


@pytest.mark.parametrize("package", PACKAGES, ids=lambda p: f"{p.id}")
def test_every_output_is_named_in_both_statements(package):
    names = {name for case in package.public for name in case.expected} - {"result"}
    for lang in ("zh", "en"):
        source = package.text(f"statement.{lang}.md")
        # kv_indptr_0: an output for each level or rank, of which the statement names the kind.
        unknown = [n for n in names if n not in source and re.sub(r"_\d+$", "", n) not in source]
        assert not unknown, f"statement.{lang}.md does not say what {unknown} is"
