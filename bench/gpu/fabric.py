# SPDX-License-Identifier: Apache-2.0
# Copyright the ztcp authors
"""A local fabric of shared-memory NICs, as ztcp_setup --local makes it."""
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile

SETUP = "tools/ztcp_setup/ztcp_setup"  # In a build folder.
SWITCH = "tools/ztcp_switch/ztcp_switch"


class Fabric:
    """`ranks` NICs, joined directly or by a switch, until close()."""

    def __init__(self, build, ranks, mtu=0, topology="mesh"):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="ztcp-gpu."))
        self.config = self.folder / "ztcp.conf"
        command = [build / SETUP, "--local", str(ranks), "--dir", self.folder, "--topology", topology]
        if mtu:
            command += ["--mtu", str(mtu)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        self.switch = None
        if topology == "switch":
            reading, writing = os.pipe()
            self.switch = subprocess.Popen(
                [build / SWITCH, "--config", self.config, "--exit-with-parent", "--ready-fd",
                 str(writing)], pass_fds=[writing], stdout=subprocess.DEVNULL)
            os.close(writing)
            if not os.read(reading, 1):
                sys.exit("the switch did not start")
            os.close(reading)

    def close(self):
        if self.switch:
            self.switch.send_signal(signal.SIGTERM)
            self.switch.wait(10)
        shutil.rmtree(self.folder, ignore_errors=True)
