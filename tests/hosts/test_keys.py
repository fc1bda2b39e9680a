"""Certificates: of one authority, with private keys that are private, and refused where they are not."""

from __future__ import annotations

import stat
import sys
from pathlib import Path

import pytest

from pgdyno.base.errors import HostError, InputError
from pgdyno.hosts import certificates, connection, dask
from pgdyno.hosts.certificates import Identity


def test_private_keys_are_private_and_every_certificate_is_of_the_authority(tmp_path: Path) -> None:
    from cryptography import x509

    folder = tmp_path / "new" / "keys"
    written = certificates.make(folder, ["scheduler", "alpha"])
    assert {path.name for path in written} == {
        f"{name}.{kind}" for name in ("authority", "scheduler", "alpha") for kind in ("crt", "key")
    }
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    for path in written:
        assert path.suffix == ".crt" or stat.S_IMODE(path.stat().st_mode) == 0o600, path
    authority, alpha = (
        x509.load_pem_x509_certificate((folder / f"{text}.crt").read_bytes()) for text in ("authority", "alpha")
    )
    alpha.verify_directly_issued_by(authority)
    limits = [item.extensions.get_extension_for_class(x509.BasicConstraints).value.ca for item in (authority, alpha)]
    assert limits == [True, False], "the key of a worker makes no certificates"


def test_a_further_name_gets_a_certificate_of_the_same_authority(tmp_path: Path) -> None:
    from cryptography import x509

    certificates.make(tmp_path, ["alpha"])
    before = (tmp_path / "authority.crt").read_bytes()
    assert [path.name for path in certificates.make(tmp_path, ["beta"])] == ["beta.key", "beta.crt"]
    assert (tmp_path / "authority.crt").read_bytes() == before
    beta = x509.load_pem_x509_certificate((tmp_path / "beta.crt").read_bytes())
    beta.verify_directly_issued_by(x509.load_pem_x509_certificate(before))


@pytest.mark.parametrize(
    ("name", "why"), [("alpha", "has a certificate for alpha"), ("authority", "cannot name"), ("../x", "cannot name")]
)
def test_a_name_that_is_taken_or_none_is_refused(tmp_path: Path, name: str, why: str) -> None:
    certificates.make(tmp_path, ["alpha"])
    with pytest.raises(InputError, match=why):
        certificates.make(tmp_path, [name])


def test_a_private_key_that_others_can_read_is_not_used(tmp_path: Path) -> None:
    certificates.make(tmp_path, ["alpha"])
    Identity(tmp_path, "alpha").security()
    (tmp_path / "alpha.key").chmod(0o640)
    with pytest.raises(InputError, match="can be read by other users"):
        Identity(tmp_path, "alpha").security()


def test_a_certificate_that_is_missing_is_said_with_the_command_that_makes_it(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"authority\.crt cannot be read") as raises:
        Identity(tmp_path, "gamma").security()
    assert "--name gamma" in raises.value.remedy


def test_without_the_packages_the_remedy_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name, use in (
        ("distributed", dask.distributed),
        ("cryptography", lambda: certificates.make(tmp_path, ["alpha"])),
    ):
        monkeypatch.setitem(sys.modules, name, None)
        with pytest.raises(HostError, match=f"package {name}, which is not installed") as raises:
            use()
        assert raises.value.remedy


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("tcp://10.0.0.5:8786", "not encrypted"),
        ("tcp://127.0.0.1:8786", "not encrypted"),
        ("ws://10.0.0.5", "not encrypted"),
        ("10.0.0.5:8786", "no scheme"),
        ("tls://", "not an address"),
        ("tls://a b:1", "not an address"),
        ("tls://10.0.0.5:70000", "not an address"),
    ],
)
def test_a_scheduler_is_reached_by_tls_or_not_at_all(text: str, why: str) -> None:
    with pytest.raises(InputError, match=why):
        dask.of_scheduler(text, "scheduler")


def test_addresses_are_read_with_and_without_port() -> None:
    assert dask.of_scheduler("tls://db.example", "scheduler").url == "tls://db.example:8786"
    assert dask.to_listen("[fd00::5]:9", 1).url == "tls://[fd00::5]:9"
    assert dask.to_listen("10.0.0.5", 8788).port == 8788
    for everywhere in ("0.0.0.0", "[::]:8786"):
        with pytest.raises(InputError, match="every interface"):
            dask.to_listen(everywhere, 1)


RIGHT = 'schema_version = 1\nscheduler = "tls://10.0.0.5"\nkeys = "k"\n[drivers]\nalpha = 2\n'


def test_a_hosts_file_is_read_and_its_keys_lie_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "hosts.toml"
    path.write_text(RIGHT)
    result = connection.read(path)
    assert (result.drivers, result.scheduler.port, result.identity.folder) == ({"alpha": 2}, 8786, tmp_path / "k")


def test_the_hosts_file_of_the_guide_is_right(tmp_path: Path, repository: Path) -> None:
    guide = (repository / "docs/guide/hosts.md").read_text()
    path = tmp_path / "hosts.toml"
    path.write_text(guide.partition("```toml\n")[2].partition("```")[0])
    result = connection.read(path)
    assert (result.drivers, result.listen) == ({"alpha": 2, "beta": 1}, "10.0.0.1")


@pytest.mark.parametrize(
    ("was", "becomes", "why"),
    [
        ("schema_version = 1", "schema_version = 2", "schema_version = 1 is missing"),
        ("tls:", "tcp:", "not encrypted"),
        ('keys = "k"', "keys = 1", "keys is missing"),
        ('keys = "k"', 'keys = "k"\nhost = 1', "no key `host`"),
        ("alpha = 2", "", "no host drives"),
        ("alpha = 2", "alpha = 0", "drivers.alpha: a weight is"),
        ("alpha = 2", "alpha = true", "drivers.alpha: a weight is"),
        ("[drivers]", "[drivers", "is not TOML"),
    ],
)
def test_what_is_wrong_in_a_hosts_file_is_named(tmp_path: Path, was: str, becomes: str, why: str) -> None:
    path = tmp_path / "hosts.toml"
    path.write_text(RIGHT.replace(was, becomes))
    with pytest.raises(InputError, match=why):
        connection.read(path)
