"""Chapter 0: one page that imports nothing of ours and says what transformers says."""

import ast
import importlib.util
from pathlib import Path
from types import ModuleType

import pytest
import torch
import torch.nn.functional as F

HERE = Path(__file__).resolve()
# In the checkout the examples are beside the tests; on a chapter's own tree the main lies in the tree.
FOLDERS = [HERE.parents[2] / "examples", HERE.parents[1] / "tree" / "examples"]
SCRIPT = next(folder / "ch00_whole_engine.py" for folder in FOLDERS if folder.is_dir())


@pytest.fixture(scope="module")
def page() -> ModuleType:
    spec = importlib.util.spec_from_file_location("ch00_whole_engine", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_it_imports_nothing_of_ours() -> None:
    names = set()
    for node in ast.walk(ast.parse(SCRIPT.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add(str(node.module).partition(".")[0])
    assert "minisgl" not in names


def test_it_says_what_transformers_says(page: ModuleType, model_folder: Path) -> None:
    prompt = [40, 71, 82, 303, 9]
    with torch.inference_mode():
        said = page.Engine(model_folder).generate(prompt, 6)
    assert said == page.transformers_says(model_folder, prompt, 6)


def test_its_parts(page: ModuleType) -> None:
    x, weight = torch.randn(3, 8), torch.randn(8)
    torch.testing.assert_close(page.rms_norm(x, weight, 1e-6), F.rms_norm(x, (8,), weight, 1e-6))
    heads = torch.randn(5, 2, 8)
    turned = page.rotate(heads, 10_000.0)
    assert torch.equal(turned[0], heads[0])
    torch.testing.assert_close(turned.norm(dim=-1), heads.norm(dim=-1))
