#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright the ztcp authors
"""Asks libnccl-env-ztcp.so for variables as NCCL does, through both tables.

  env_plugin.py LIBRARY
"""
import ctypes
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

LIBRARY = pathlib.Path(sys.argv[1]).resolve()
NAMES = ("NCCL_NET", "NCCL_NET_PLUGIN", "NCCL_DEBUG", "HOME")
INIT = (ctypes.c_uint8, ctypes.c_uint8, ctypes.c_uint8, ctypes.c_char_p)
LOGGER = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_ulong, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p,
                          ctypes.c_char_p)


class Table(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("init", ctypes.c_void_p), ("finalize", ctypes.CFUNCTYPE(ctypes.c_int)),
                ("get_env", ctypes.CFUNCTYPE(ctypes.c_char_p, ctypes.c_char_p))]


def ask(library, version):
    """Prints the line for NCCL's log and the value of each name, as a child."""
    table = Table.in_dll(ctypes.CDLL(library), f"ncclEnvPlugin_v{version}")
    lines = []
    logger = LOGGER(lambda level, flags, file, line, text, value: lines.append((text % value).decode()))
    types = INIT if version == 1 else (*INIT, LOGGER)
    arguments = (2, 30, 7, b"") if version == 1 else (2, 30, 7, b"", logger)
    assert ctypes.CFUNCTYPE(ctypes.c_int, *types)(table.init)(*arguments) == 0
    print(table.name.decode(), *lines)
    for name in NAMES:
        print((table.get_env(name.encode()) or b"-").decode())
    assert table.finalize() == 0


class EnvPlugin(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.library = self.folder / "libnccl-env.so"
        shutil.copyfile(LIBRARY, self.library)
        (self.folder / "libnccl-net.so").touch()

    def ask(self, version, **environment):
        done = subprocess.run([sys.executable, __file__, LIBRARY, "--ask", self.library, str(version)], check=True,
                              capture_output=True, text=True, env={"HOME": "/root", **environment})
        self.assertEqual(done.stderr, "")
        return done.stdout.splitlines()

    def test_gives_the_values_of_the_profile(self):
        plugin = str(self.folder / "libnccl-net.so")
        values = ["ztcp", plugin, "-", "/root"]
        self.assertEqual(self.ask(1, ZTCP_TRANSPORT="sockets"), ["ztcp", *values])
        self.assertEqual(self.ask(2, ZTCP_TRANSPORT="sockets"),
                         [f"ztcp ENV/ztcp : NCCL_NET_PLUGIN={plugin}, NCCL_NET=ztcp: ZTCP_TRANSPORT=sockets is set",
                          *values])

    def test_the_users_values_come_first(self):
        said = self.ask(2, ZTCP_TRANSPORT="sockets", NCCL_NET="Socket", NCCL_DEBUG="INFO")
        self.assertEqual(said, ["ztcp ENV/ztcp : sets no variable: NCCL_NET=Socket chooses another network", "Socket",
                                "-", "INFO", "/root"])


if __name__ == "__main__":
    if sys.argv[2:3] == ["--ask"]:
        ask(sys.argv[3], int(sys.argv[4]))
    else:
        unittest.main(argv=sys.argv[:1])
