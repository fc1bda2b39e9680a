"""What libpq makes of a connection, and what sessions of the engine are then: the same, or refused."""

from __future__ import annotations

import contextlib
import itertools
import shutil
import subprocess
from typing import TYPE_CHECKING

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pgdyno.base import endpoint
from pgdyno.base.errors import HostError, InputError
from pgdyno.server import remote

from . import site_of

if TYPE_CHECKING:
    from pathlib import Path

    from .site_of import Site

MODES = ("disable", "allow", "prefer", "require", "verify-ca", "verify-full")


def libpqs(dsn: str) -> bool | None:
    """Whether a session of libpq's is encrypted; None if there is none."""
    try:
        with psycopg.connect(dsn) as connection:
            return connection.pgconn.ssl_in_use
    except psycopg.OperationalError:
        return None


def engines(dsn: str) -> bool | None:
    """The same of the engine's, which begins with what libpq made of the string."""
    try:
        with contextlib.closing(remote.connect(dsn)) as connection:
            return endpoint.of_session(connection, dsn).check()["tls"] is not None
    except (HostError, InputError) as error:
        print(f"refused: {error.message}")
        return None


def alone(site: Site, **more: str) -> str | None:
    """What the engine has against a server by TLS, whatever libpq has; None if nothing."""
    dsn = site.dsn(**more)
    effective = endpoint.effective(dsn)
    address = endpoint.ServerAddress("localhost", site.port)
    try:
        endpoint.described(effective, address, site_of.SECRET, encrypted=True).check()
    except InputError as error:
        return error.message
    return None


@pytest.mark.parametrize("database", site_of.DATABASES)
def test_the_engine_is_encrypted_where_libpq_is(site: Site, database: str) -> None:
    for mode in (None, *MODES):
        dsn = site.dsn(database, **({} if mode is None else {"sslmode": mode}), sslrootcert=str(site.root))
        assert engines(dsn) is libpqs(dsn), (database, mode)
    unsaid = site.dsn(database)
    assert engines(unsaid) is libpqs(unsaid) is (database != "only_clear")


@pytest.mark.parametrize("certificate", site_of.CERTIFICATES)
def test_a_certificate_is_judged_as_libpq_judges_it(site: Site, certificate: str) -> None:
    site.show(certificate)
    shown = site.folder / f"{certificate}.crt"
    for mode, root in itertools.product(("require", "verify-ca", "verify-full"), (None, site.root, shown)):
        more = {"sslmode": mode} | ({} if root is None else {"sslrootcert": str(root)})
        if root is None and mode != "require":
            continue
        refused = alone(site, **more)
        assert (refused is None) is (libpqs(site.dsn(**more)) is True), (certificate, mode, root, refused)


def test_what_is_wrong_with_a_certificate_is_said(site: Site) -> None:
    for certificate, item in (("expired", "expired"), ("other_host", "not of the host localhost")):
        site.show(certificate)
        refused = alone(site, sslmode="verify-full", sslrootcert=str(site.root))
        assert refused is not None
        assert item in refused
    site.show("good")
    stranger = alone(site, sslmode="verify-ca", sslrootcert=str(site.encrypted.stranger))
    assert stranger is not None
    assert "sslrootcert" in stranger or "signature" in stranger.lower()


def test_a_root_certificate_at_home_is_heeded_by_require_too(site: Site, tmp_path: Path) -> None:
    (tmp_path / ".postgresql").mkdir()
    shutil.copy(site.encrypted.stranger, tmp_path / ".postgresql" / "root.crt")
    assert alone(site, sslmode="require") is not None
    assert libpqs(site.dsn(sslmode="require")) is None
    shutil.copy(site.root, tmp_path / ".postgresql" / "root.crt")
    assert engines(site.dsn(sslmode="require")) is True


@pytest.mark.parametrize("keyword", ["sslcrl", "sslcrldir"])
def test_a_revoked_certificate_is_refused_as_libpq_refuses_it(site: Site, tmp_path: Path, keyword: str) -> None:
    texts = ("openssl", "x509", "-in", str(site.root), "-noout", "-hash")
    issuer = subprocess.run(texts, check=True, capture_output=True, text=True).stdout.strip()
    refusals = []
    for name in ("none", "good"):
        revoked = site.folder / f"{name}.crl"
        if keyword == "sslcrldir":  # OpenSSL looks up a list by its issuer
            (folder := tmp_path / name).mkdir()
            shutil.copy(revoked, folder / f"{issuer}.r0")
            revoked = folder
        dsn = site.dsn(sslmode="verify-full", sslrootcert=str(site.root), **{keyword: str(revoked)})
        refusals.append(alone(site, sslmode="verify-full", sslrootcert=str(site.root), **{keyword: str(revoked)}))
        assert engines(dsn) is libpqs(dsn), name
    assert refusals[0] is None
    assert refusals[1] is not None
    assert "revoked" in refusals[1].lower()


def test_the_certificates_of_the_system_are_trusted_where_they_are_asked_for(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OpenSSL takes the place of the system's certificates from this variable."""
    dsn = site.dsn(sslmode="verify-full", sslrootcert="system")
    for trusted, encrypted in ((site.root, True), (site.encrypted.stranger, None)):
        monkeypatch.setenv("SSL_CERT_FILE", str(trusted))
        assert engines(dsn) is libpqs(dsn) is encrypted
        assert (alone(site, sslmode="verify-full", sslrootcert="system") is None) is (encrypted is True)


def test_the_user_who_serves_a_socket_can_be_required(site: Site) -> None:
    cluster = site.encrypted.cluster
    server = "root" if cluster.user is None else cluster.user.name
    for name, connects in ((server, True), ("daemon", False)):
        dsn = f"{cluster.dsn} requirepeer={name}"
        assert (libpqs(dsn) is not None) is connects
        address = endpoint.ServerAddress(str(cluster.socket_dir), cluster.port)
        text = endpoint.described(endpoint.effective(dsn), address, None)
        if connects:
            text.check()
            continue
        with pytest.raises(InputError, match="requirepeer names"):
            text.check()


def test_a_client_certificate_logs_in(site: Site) -> None:
    own = {"sslcert": str(site.folder / f"{site_of.HOLDER}.crt"), "sslkey": str(site.folder / f"{site_of.HOLDER}.key")}
    dsn = site.dsn(user=site_of.HOLDER, sslmode="require", **own)
    assert engines(dsn) is libpqs(dsn) is True
    demanded = psycopg.conninfo.make_conninfo(dsn, sslcertmode="require")
    assert engines(demanded) is libpqs(demanded) is True
    without = site.dsn(user=site_of.HOLDER, sslmode="require")
    assert engines(without) is libpqs(without) is None


def test_channel_binding_and_ways_to_log_in_are_libpqs(site: Site) -> None:
    for more in (
        {"channel_binding": "require", "sslmode": "require"},
        {"channel_binding": "require", "sslmode": "disable"},
        {"channel_binding": "disable", "sslmode": "require"},
        {"require_auth": "scram-sha-256"},
        {"require_auth": "md5,password"},
        {"require_auth": "!scram-sha-256"},
        {"require_auth": "!none"},
    ):
        dsn = site.dsn(**more)
        assert engines(dsn) is libpqs(dsn), more
        if libpqs(dsn) is None and "require_auth" in more:
            address = endpoint.ServerAddress("localhost", site.port)
            text = endpoint.described(endpoint.effective(dsn), address, site_of.SECRET)
            with pytest.raises(InputError, match="require_auth excludes"):
                text.check()


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.fixed_dictionaries(
        {},
        optional={
            "sslmode": st.sampled_from(MODES),
            "sslrootcert": st.sampled_from(["root", "stranger", "none"]),
            "channel_binding": st.sampled_from(["disable", "prefer", "require"]),
            "require_auth": st.sampled_from(["scram-sha-256", "md5", "!password", "none"]),
            "ssl_min_protocol_version": st.sampled_from(["TLSv1", "TLSv1.2", "TLSv1.3"]),
            "ssl_max_protocol_version": st.sampled_from(["TLSv1.2", "TLSv1.3"]),
            "sslsni": st.sampled_from(["0", "1"]),
            "keepalives": st.sampled_from(["0", "1"]),
            "keepalives_idle": st.sampled_from(["0", "30"]),
            "connect_timeout": st.sampled_from(["0", "5"]),
            "hostaddr": st.sampled_from(["127.0.0.1", "127.0.0.9"]),
            "target_session_attrs": st.sampled_from(["any", "read-write", "read-only", "primary"]),
            "options": st.sampled_from(["-c work_mem=1MB", "-c TimeZone=Asia/Tokyo"]),
            "application_name": st.just("somebody's"),
            "sslnegotiation": st.sampled_from(["postgres", "direct"]),
            "gssencmode": st.sampled_from(["disable", "prefer"]),
        },
    ),
    st.sampled_from(site_of.DATABASES),
)
def test_whatever_keywords_are_given(site: Site, keywords: dict[str, str], database: str) -> None:
    files = {"root": site.root, "stranger": site.encrypted.stranger, "none": site.folder / "none.crt"}
    if "sslrootcert" in keywords:
        keywords = keywords | {"sslrootcert": str(files[keywords["sslrootcert"]])}
    dsn = site.dsn(database, **keywords)
    assert engines(dsn) is libpqs(dsn)


def test_the_host_that_libpq_chose_among_several_is_the_engines(site: Site) -> None:
    """At the first address nothing listens."""
    dsn = site.dsn(host="127.0.0.1,localhost", port=f"1,{site.port}", sslmode="verify-full", sslrootcert=str(site.root))
    assert engines(dsn) is True
    with remote.connect(dsn) as connection:
        further = psycopg.conninfo.conninfo_to_dict(endpoint.pinned(dsn, connection))
    assert (further["host"], further["port"]) == ("localhost", str(site.port))


def test_variables_and_services_are_libpqs(site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "services"
    file.write_text(
        f"[lab]\nhost=localhost\nport={site.port}\nuser={site_of.ROLE}\ndbname=only_tls\noptions=-c work_mem=7MB\n"
    )
    monkeypatch.setenv("PGSERVICEFILE", str(file))
    monkeypatch.setenv("PGTZ", "Asia/Tokyo")
    monkeypatch.setenv("PGDATESTYLE", "ISO, DMY")
    monkeypatch.setenv("PGHOSTADDR", "127.0.0.1")
    with remote.connect("service=lab") as connection:
        session = endpoint.of_session(connection, "service=lab")
    assert session.encrypted
    assert session.document["address"] == "127.0.0.1"
    assert session.document["startup"] == {
        "options": "-c work_mem=7MB",
        "timezone": "Asia/Tokyo",
        "datestyle": "ISO, DMY",
    }
    assert session.check()["tls"] is not None


def test_a_password_file_is_libpqs(site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PGPASSWORD")
    file = tmp_path / ".pgpass"
    file.write_text(f"localhost:*:either:{site_of.ROLE}:{site_of.SECRET}\n")
    file.chmod(0o600)
    monkeypatch.setenv("PGPASSFILE", str(file))
    assert engines(site.dsn()) is True
    file.chmod(0o644)
    assert engines(site.dsn()) is libpqs(site.dsn()) is None


@pytest.mark.parametrize(
    ("keyword", "value"),
    [("replication", "database"), ("min_protocol_version", "3.2"), ("ssl_max_protocol_version", "TLSv1.1")],
)
def test_what_the_engine_cannot_heed_is_refused_by_name(site: Site, keyword: str, value: str) -> None:
    dsn = site.dsn()
    with remote.connect(dsn) as connection, pytest.raises(InputError, match=f"{keyword} is not supported"):
        endpoint.of_session(connection, psycopg.conninfo.make_conninfo(dsn, **{keyword: value}))


def test_a_keyword_of_a_later_libpq_is_refused_unless_it_is_as_usual(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that this libpq has stands for it."""
    monkeypatch.setattr(endpoint, "_KNOWN", endpoint._KNOWN - {"krbsrvname"})
    assert engines(site.dsn()) is True
    dsn = site.dsn(krbsrvname="another")
    with remote.connect(dsn) as connection, pytest.raises(InputError, match="krbsrvname is not supported"):
        endpoint.of_session(connection, dsn)


def test_a_password_is_in_no_text_of_an_endpoint(site: Site) -> None:
    with remote.connect(site.dsn()) as connection:
        session = endpoint.of_session(connection, site.dsn())
    assert session.document["password"] == site_of.SECRET
    assert site_of.SECRET not in repr(session)
