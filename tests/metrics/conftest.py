"""What tests of this folder attach is not calibrated."""

from __future__ import annotations

from ..support.volumes import uncalibrated

__all__ = ["uncalibrated"]
