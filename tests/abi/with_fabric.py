#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright the ztcp authors
"""Runs a command with a small fabric, in a folder that is removed afterwards.

  with_fabric.py [--memory N] COMMAND...

The fabric has two NICs that are the two ends of one memif, so two processes reach each other and
one process reaches itself; --memory adds N that are called memory0 and on, which a module under
test gives to its in-memory transport. ZTCP_CONFIG names its config; %DIR% in an argument becomes
the folder. All ZTCP_* and NCCL_* variables of the caller are removed.
"""
import os
import pathlib
import subprocess
import sys
import tempfile

FABRIC = """
schema = 1
name = "abi-test"
run_dir = "run"

[tcp]
connect_timeout_ms = 5000
user_timeout_ms = 5000
keepalive_idle_ms = 1000
keepalive_interval_ms = 1000

[messages]
drain_timeout_ms = 1000
"""

NIC = """
[[nic]]
name = "ztcp{i}"
driver = "memif"
address = "10.77.1.1{i}/24"
mac = "52:54:00:77:01:1{i}"
mtu_bytes = 9000
memif_socket = "memif.sock"
memif_role = "{role}"
"""

MEMORY_NIC = """
[[nic]]
name = "memory{i}"
driver = "memif"
address = "10.77.2.1{i}/24"
mac = "52:54:00:77:02:1{i}"
memif_socket = "memory{i}.sock"
memif_role = "server"
"""


def main():
    command = sys.argv[1:]
    memory = 0
    if command[0] == "--memory":
        memory = int(command[1])
        command = command[2:]
    with tempfile.TemporaryDirectory(prefix="ztcp-") as folder:
        config = pathlib.Path(folder) / "ztcp.conf"
        (pathlib.Path(folder) / "run").mkdir()
        config.write_text(FABRIC + "".join(
            NIC.format(i=i, role=role) for i, role in enumerate(("server", "client")))
            + "".join(MEMORY_NIC.format(i=i) for i in range(memory)))
        environment = {k: v for k, v in os.environ.items()
                       if not k.startswith(("ZTCP_", "NCCL_"))}
        environment["ZTCP_CONFIG"] = str(config)
        command = [a.replace("%DIR%", folder) for a in command]
        return subprocess.run(command, env=environment, check=False).returncode


if __name__ == "__main__":
    status = main()
    # A signal must not read as success or skip.
    sys.exit(status if 0 <= status < 128 else 1)
