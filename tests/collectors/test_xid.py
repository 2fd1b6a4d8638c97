"""XIDs as NVML tells them."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from collectors.nvml_session import NvmlSession
from collectors.xid import XidCollector
from ranktop.sample import NoData, SourceError
from tests.collectors.nvml_shim import Driver

pytestmark = pytest.mark.tools("gcc")


def test_xids_come_once_and_name_their_gpu(driver: Callable[..., Driver], tmp_path: Path) -> None:
    it = driver()
    it.say(count=2)
    xids = XidCollector(NvmlSession(proc_root=tmp_path), wall=lambda: 5.0)
    assert xids.read(None, 0.0) == ()
    it.say(count=2, gpu1_xid=79)
    deadline = time.monotonic() + 5
    while not (found := xids.read(None, 0.0)):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    (event,) = found
    assert (event.kind, event.fields, event.at_unix_seconds) == ("xid", {"xid": 79, "pci_bus_id": "0000:2a:00.0"}, 5.0)
    assert xids.read(None, 0.0) == ()
    xids._session.release()
    with pytest.raises(NoData):
        xids.read(None, 0.0)


def test_a_gpu_that_is_lost_ends_the_wait_for_xids_for_half_a_minute(
    driver: Callable[..., Driver], tmp_path: Path
) -> None:
    it = driver()
    it.say(count=1, wait=15)
    xids = XidCollector(NvmlSession(proc_root=tmp_path))
    with suppress(SourceError):
        xids.read(None, 100.0)
    assert xids._listener is not None
    xids._listener._thread.join(5)
    it.say(count=1)
    with pytest.raises(SourceError, match="XIDs still come"):
        xids.read(None, 129.0)
    assert xids.read(None, 130.0) == ()


def test_xids_that_no_gpu_tells(driver: Callable[..., Driver], tmp_path: Path) -> None:
    driver().say(count=1, gpu0_register=3)
    xids = XidCollector(NvmlSession(proc_root=tmp_path))
    with suppress(NoData):
        xids.read(None, 0.0)
    assert xids._listener is not None
    xids._listener._thread.join(5)
    with pytest.raises(NoData, match="XID"):
        xids.read(None, 0.0)
