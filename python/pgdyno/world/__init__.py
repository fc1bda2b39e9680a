"""What the runs of an experiment stand on: one interface, :class:`World`, and its implementations by name.

``emulated`` starts PostgreSQL on emulated volumes of this machine, ``real`` measures an existing server, ``fake`` makes figures
up without PostgreSQL or root, so that everything around a run can be tested in milliseconds.
"""

from pgdyno.world.base import PlannedRun, PreparedWorld, RunOutcome, World
from pgdyno.world.registry import world_of

__all__ = ["PlannedRun", "PreparedWorld", "RunOutcome", "World", "world_of"]
