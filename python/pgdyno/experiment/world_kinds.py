"""What each kind of world lets an experiment file choose. :mod:`pgdyno.world` says how each works."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class WorldKind:
    """The keys of one kind. What its arms must not ask for is in :mod:`pgdyno.experiment.world_refusals`."""

    foreign_keys: dict[str, str]
    """Key of ``[world]`` that this kind does not have -> why."""
    label: str
    """What an arm of an experiment without factors is called where it names no volume."""
    chooses_server: bool = True
    """Whether pgdyno starts the server, so that its storage, instance and settings are chosen in the file."""
    public: bool = True
    """Whether the schema and the reference name it."""


_ITS_OWN_SERVER = {
    "dsn": 'dsn is for kind = "real"; an emulated world starts its own server',
    "bought": 'bought is for kind = "real"; an emulated world has the volumes that it names',
}
_NOT_CHOSEN = 'it cannot be chosen with kind = "real": the server has its storage and its clock'
EMULATED = WorldKind(_ITS_OWN_SERVER, "emulated server")
WORLD_KINDS = {
    "emulated": EMULATED,
    "real": WorldKind(
        dict.fromkeys(
            ("volume", "volumes", "restored", "file_system", "mount_options", "dilation", "cpus_awake"), _NOT_CHOSEN
        ),
        "real server",
        chooses_server=False,
    ),
    "fake": WorldKind(_ITS_OWN_SERVER, "fake server", public=False),
}
"""The kinds by name. ``fake`` makes figures up and is for tests."""
