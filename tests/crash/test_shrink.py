"""The fewest writes that still fail, and whose they were: by an examiner that is asked nothing real, and on a small ext4."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING, Any, cast

from pgdyno.durability.crash.book import Cut, Name
from pgdyno.durability.crash.examine import CutOutcome, Examiner
from pgdyno.durability.crash.shrink import owners, shrink
from pgdyno.machine.mounts import loops

from ..host.needs import expect, needs_fuse

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

NAME = Name("results/x", "pieces-4096", 1, 17)
PAGE_BYTES, HALF_BYTES = 8192, 4096


class Guilty:
    """An examiner of a cut that harms the requests up to a number, and fails as long as all of the ``guilty`` ones are harmed."""

    def __init__(self, requests: int, guilty: set[int]) -> None:
        self._requests, self._guilty, self.tried = requests, guilty, 0

    def outcome(self, whole: Sequence[int] = ()) -> CutOutcome:
        """With these requests whole."""
        left = [number for number in range(self._requests) if number not in whole]
        undecided: list[dict[str, Any]] = [{"request": number, "kept": []} for number in left]
        undecided += [{"request": number, "kept": "whole"} for number in whole]
        cut = Cut(NAME, "commit", 1, 2, "5c0ffee", new=True, undecided=undecided, spoilt=None)
        return CutOutcome(cut, {"ledger": "gone"} if self._guilty <= set(left) else {})

    def try_cut(
        self, reading: str, seed: int, number: int, *, again: bool = False, whole: Sequence[int] = ()
    ) -> CutOutcome:
        """As :class:`Examiner` has it."""
        assert (reading, seed, number, again) == (NAME.reading, NAME.seed, NAME.number, True)
        self.tried += 1
        return self.outcome(whole)


def test_what_is_left_are_the_writes_without_which_the_cut_does_not_fail() -> None:
    for guilty in ({13}, {13, 77}, {0, 1, 98, 99}):
        examiner = Guilty(100, guilty)
        shrunk = shrink(cast("Examiner", examiner), NAME, examiner.outcome())
        assert {document["request"] for document in shrunk.outcome.cut.harmed} == guilty
        assert sorted([*shrunk.whole, *guilty]) == list(range(100))
        assert examiner.tried < 100, "halves first, not one after the other"


def test_a_cut_that_fails_whatever_was_lost_has_nothing_left() -> None:
    examiner = Guilty(5, set())
    assert shrink(cast("Examiner", examiner), NAME, examiner.outcome()).outcome.cut.harmed == []


@needs_fuse
def test_a_block_is_a_half_of_a_page_of_a_file(state: Path) -> None:
    folder, image = state.parent, state.parent / "data.img"
    mounted = folder / "mounted"
    mounted.mkdir()
    with image.open("wb") as file:
        file.truncate(32 << 20)
    subprocess.run(["mkfs.ext4", "-q", "-F", "-b", "4096", image], check=True)
    subprocess.run(["mount", "-o", "loop", image, mounted], check=True)
    try:
        (mounted / "base").mkdir()
        marked = os.urandom(HALF_BYTES)
        (mounted / "base" / "16384").write_bytes(bytes(3 * PAGE_BYTES + HALF_BYTES) + marked)
        (mounted / "empty").touch()
    finally:
        subprocess.run(["umount", mounted], check=True)
    requests = [
        {"volume": 0, "request": 7, "offset": image.read_bytes().index(marked), "len": HALF_BYTES},
        {"volume": 0, "request": 8, "offset": 0, "len": HALF_BYTES},
        {"volume": 1, "request": 9, "offset": 0, "len": HALF_BYTES},
    ]
    assert owners([image], folder, requests) == {
        7: "base/16384, page 3, second half",
        8: "the file system's own, or a file that is gone",
    }
    expect(lambda: str(image) not in {loop.backing_file for loop in loops()}, "the kernel lets it go")
