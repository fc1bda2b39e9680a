"""The tuned set follows memory, gives its reasons, and never gives up durability."""

from __future__ import annotations

import pytest

from pgdyno.base.errors import InputError
from pgdyno.server import settings

GIB = 1 << 30


def test_the_tuned_set_follows_memory() -> None:
    small, large = settings.tuned(GIB), settings.tuned(64 * GIB)
    assert (small["shared_buffers"], small["effective_cache_size"]) == ("256MB", "768MB")
    assert (large["shared_buffers"], large["max_wal_size"]) == ("16384MB", "65536MB")
    assert small["max_wal_size"] == "2048MB"


def test_wal_fits_on_its_volume() -> None:
    """Of 16 GiB of memory 32 GiB of WAL were proposed for a volume of 20 GiB."""
    chosen = {setting.name: setting for setting in settings.tuned_settings(16 * GIB, wal_volume_bytes=20 * GIB)}
    assert (chosen["max_wal_size"].value, chosen["min_wal_size"].value) == ("8192MB", "2048MB")
    assert "40% of the volume" in chosen["max_wal_size"].reason
    assert settings.tuned(GIB, wal_volume_bytes=100 * GIB) == settings.tuned(GIB), "there is room"
    tiny = settings.tuned(GIB, wal_volume_bytes=GIB // 16)
    assert (tiny["max_wal_size"], tiny["min_wal_size"]) == ("32MB", "32MB"), "the server starts with no less"


def test_every_setting_has_a_reason_and_durability_is_untouched() -> None:
    chosen = settings.tuned_settings(GIB)
    assert all(setting.reason for setting in chosen)
    names = {setting.name for setting in chosen}
    assert not names & {"fsync", "full_page_writes", "synchronous_commit", "autovacuum"}
    assert settings.defaults() == {}


def test_a_line_is_quoted() -> None:
    assert settings.render({"a.b": r"it's \ so"}) == "a.b = 'it''s \\\\ so'\n"


@pytest.mark.parametrize(
    "chosen",
    [
        {"fsync": "off"},
        {"full_page_writes": " OFF "},
        {"autovacuum": "false"},
        {"autovacuum": "fals"},
        {"FSync": "of"},
        {"Port": "1"},
        {"port": "1"},
        {"work_mem = 1\nfsync": "off"},
        {"work_mem": "1\nfsync = off"},
    ],
)
def test_what_must_not_be_set_is_refused(chosen: dict[str, str]) -> None:
    with pytest.raises(InputError) as caught:
        settings.render(chosen)
    assert caught.value.remedy


def test_what_only_looks_like_it_is_allowed() -> None:
    assert settings.render({"fsync": "on", "autovacuum": "on"}).count("\n") == 2
