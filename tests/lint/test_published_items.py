"""Every thing that the documents do has an answer: each rule is broken once, and the files of the repository break none."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tools.lint import published_items
from tools.published.items import FOLDER, LETTERS, read_items

ROOT = Path(__file__).resolve().parents[2]
Change = Callable[[str, str], list[str]]


@pytest.fixture
def change(tmp_path: Path) -> Change:
    """Replaces a part of the whitepaper's file in a copy, and says what is found."""
    shutil.copytree(ROOT / FOLDER, tmp_path / FOLDER)
    for name in LETTERS:
        for item in read_items(ROOT / FOLDER / f"{name}.toml").item:
            for page in item.pages:
                (tmp_path / page).parent.mkdir(parents=True, exist_ok=True)
                (tmp_path / page).touch()

    def changed(old: str, new: str) -> list[str]:
        path = tmp_path / FOLDER / "whitepaper.toml"
        text = path.read_text(encoding="utf-8")
        assert old in text
        path.write_text(text.replace(old, new, 1), encoding="utf-8")
        return [str(finding) for finding in published_items.check(tmp_path)]

    return changed


def test_all_are_there_and_none_is_without_an_answer() -> None:
    assert published_items.check(ROOT) == []
    items = [item for name in LETTERS for item in read_items(ROOT / FOLDER / f"{name}.toml").item]
    assert len({item.id for item in items}) == len(items)
    assert all(item.here or item.missing for item in items)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('id = "W1"\n', 'id = "W2"\n', "the items must be W1 to W62, each once: look at W1"),
        ('"volume attach"', '"volume attach", "volume detatch"', "W1: there is no command `pgdyno volume detatch`"),
        ("degradation.md", "degraded.md", "W3: there is no file docs/concept/volume/degraded.md"),
        ('document = "whitepaper"', 'document = "paper"', "its document is `paper`: write `whitepaper`"),
        ('missing = "no backup is', 'missed = "no backup is', "Extra inputs are not permitted"),
        ('commands = ["volume types", "volume attach"]\n', "", "W1 needs `commands` where it has `here`"),
    ],
)
def test_an_answer_that_leads_nowhere_is_found(change: Change, old: str, new: str, said: str) -> None:
    assert any(said in finding for finding in change(old, new))


def test_an_item_without_an_answer_is_found(change: Change) -> None:
    result = change('missing = "no backup is', '# "no backup is')
    assert any("W21 has no answer" in finding for finding in result)
