"""How much longer the fuzz tests run: RANKTOP_SOAK=10 makes every one of them ten times as long."""

from __future__ import annotations

import os

TIMES = int(os.environ.get("RANKTOP_SOAK", "1"))
