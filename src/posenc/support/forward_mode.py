"""The lock of forward differentiation: its levels belong to the process, so two threads would close each other's."""

from __future__ import annotations

import threading

ONE_AT_A_TIME = threading.Lock()
