from collections.abc import Callable
from pathlib import Path

import pytest

MakeCourse = Callable[[dict[str, str]], Path]


@pytest.fixture
def make_course(tmp_path: Path) -> MakeCourse:
    """A checkout of its own from path -> content; chapter.toml files get their stage and title here."""

    def make(files: dict[str, str]) -> Path:
        root = tmp_path / "course"
        for name, content in files.items():
            if name.endswith("chapter.toml"):
                content = (
                    f'stage = {{ zh = "段", en = "stage" }}\ntitle = {{ zh = "题", en = "title" }}\n{content}'
                )
            file = root / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(content, encoding="utf-8")
        (root / "fakes").mkdir(exist_ok=True)
        return root

    return make
