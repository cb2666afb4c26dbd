# SPDX-License-Identifier: Apache-2.0
# Copyright the ztcp authors
"""Shared by the tests that run ztcp_perf as processes."""
import os
import socket
import time

LIMIT_S = 60


def environment(**more):
    """This process's, without a launcher's variables."""
    unwanted = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "OMPI_", "SLURM_", "PMI_", "MASTER_", "ZTCP_", "FAKE_")
    clean = {k: v for k, v in os.environ.items() if not k.startswith(unwanted)}
    return {**clean, **more}


def wait_until(condition):
    deadline = time.monotonic() + LIMIT_S
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError("waited too long")
        time.sleep(0.01)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]
