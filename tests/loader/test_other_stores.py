"""Objects of moto's S3, and of each real store of that kind that is in PATH, on a way that breaks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pgdyno.loader import remote
from pgdyno.loader.remote import ranges
from pgdyno.loader.remote.checksum import RollingChecksum
from pgdyno.loader.remote.ranges import Ahead, Patience

from .others import PROGRAMS, SECRET, USER, client, other, way
from .stores import content

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pgdyno.loader.remote import Remote

SIZE = 11 << 20
"""Two parts of an upload, and a rest."""
PART = 5 << 20
"""The least that S3 takes for a part."""
SOON = Patience(tries=5, pause_first_s=0.001, pause_most_s=0.01)


@pytest.fixture(autouse=True)
def _credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranges, "RANGE_BYTES", 1 << 20)
    given = {"AWS_ACCESS_KEY_ID": USER, "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_EC2_METADATA_DISABLED": "true"}
    nowhere = {"AWS_CONFIG_FILE": "/dev/null", "AWS_SHARED_CREDENTIALS_FILE": "/dev/null"}
    for name, value in (given | nowhere).items():
        monkeypatch.setenv(name, value)
    for name in ("AWS_PROFILE", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="module", params=["moto", *PROGRAMS])
def endpoint(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """A store with two objects, and the folder of one that keeps files."""
    folder = tmp_path_factory.mktemp("store")
    with other(request.param, folder) as place:
        owner = client(place)
        owner.create_bucket(Bucket="data")
        owner.put_object(Bucket="data", Key="d/one.csv", Body=content(SIZE), ChecksumAlgorithm="SHA256")
        begun = owner.create_multipart_upload(Bucket="data", Key="d/parts.csv", ChecksumAlgorithm="CRC32")["UploadId"]
        where = {"Bucket": "data", "Key": "d/parts.csv", "UploadId": begun}
        parts = []
        for number, at in enumerate(range(0, SIZE, PART), 1):
            body = content(SIZE)[at : at + PART]
            upload_part = owner.upload_part(**where, PartNumber=number, Body=body, ChecksumAlgorithm="CRC32")
            parts.append(
                {name: upload_part[name] for name in ("ETag", "ChecksumCRC32") if name in upload_part}
                | {"PartNumber": number}
            )
        owner.complete_multipart_upload(**where, MultipartUpload={"Parts": parts})
        yield place, folder


def found(place: str, key: str) -> list[Remote]:
    return remote.find(f"s3://data/{key}", remote.S3(place), 1000)


def everything(remote: Remote) -> bytes:
    return b"".join(Ahead(SOON).pieces(remote.object, remote.head, 0, remote.bytes))


def test_objects_are_whole_however_often_the_way_breaks(endpoint: tuple[str, Path]) -> None:
    with way(endpoint[0]) as broken:
        remote, parts = found(broken.url, "d/*.csv")
        assert (remote.name, parts.name) == ("s3://data/d/one.csv", "s3://data/d/parts.csv")
        broken.cuts += [500_000, 3, 700_000, 40_000, 0, 900_000, 300_000]
        for remote_one in (remote, parts):
            whole = everything(remote_one)
            assert whole == content(SIZE)
            checksum = remote_one.object.facts.checksum
            if checksum is not None:
                fold = RollingChecksum(checksum)
                fold.add(whole)
                assert fold.wrong() is None
        assert broken.cuts == []
    assert remote.object.facts.checksum is not None
    assert remote.object.facts.checksum.algorithm == "SHA256"


def test_what_a_store_has_damaged_is_found_by_its_own_checksum(endpoint: tuple[str, Path]) -> None:
    place, folder = endpoint
    file = folder / "data" / "d" / "one.csv"
    if not file.is_file():
        pytest.skip("this store does not keep its objects as files")
    with file.open("r+b") as opened:
        opened.seek(SIZE // 2)
        opened.write(b"damaged")
    (remote,) = found(place, "d/one.csv")
    assert remote.object.facts.checksum is not None
    fold = RollingChecksum(remote.object.facts.checksum)
    fold.add(everything(remote))
    assert "its SHA256 is" in (fold.wrong() or "")
