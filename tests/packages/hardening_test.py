#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright the ztcp authors
"""Checks the hardening of the built binaries and of our own object files.

  hardening_test.py BUILD

Binaries: position independent, read-only after relocation, all symbols bound at load, no executable
stack, no RUNPATH (not the build tree's either), the stack protector in use. Objects: notes of
indirect branch tracking and shadow stacks in each, or of branch targets and signed returns on Arm.
A binary has these only if everything linked into it has, and Debian 12's DPDK and libstdc++ do not.
"""
import os
import pathlib
import re
import subprocess
import sys
import unittest

BUILD = pathlib.Path(sys.argv[1]).resolve()
BINARIES = ["plugin/libnccl-net.so", *(f"tools/{name}/{name}" for name in ("ztcp_setup", "ztcp_perf", "ztcp_stat", "ztcp_switch"))]
# It copies no memory and formats no text, so nothing in it can be fortified.
ENV_PLUGIN = "plugin/env/libnccl-env-ztcp.so"
# Static libraries of the product with objects that parse input from outside.
LIBRARIES = ["core/libcore.a", "transport/wire/libwire.a", "transport/tcp/libtcp.a", "transport/msg/libmsg.a",
             "transport/comms/libcomms.a", "transport/sockets/libsockets.a", "transport/verbs/libverbs.a",
             "transport/link/libplain_link.a", "config/libconfig.a", "plugin/libplugin.a"]

# Optimised, no function there has an array on its stack, so that none needs the protector.
WITHOUT_ARRAYS = ["transport/wire/libwire.a"]


def readelf(option, path):
    return subprocess.run(["readelf", option, "-W", path], check=True, capture_output=True, text=True).stdout


class Hardening(unittest.TestCase):
    def test_binaries_are_linked_hardened(self):
        for binary in [*BINARIES, ENV_PLUGIN]:
            with self.subTest(binary):
                path = BUILD / binary
                self.assertIn("Type:                              DYN", readelf("-h", path), "not position independent")
                segments = readelf("-l", path)
                self.assertIn("GNU_RELRO", segments)
                self.assertNotRegex(segments, r"GNU_STACK.*RWE")
                dynamic = readelf("-d", path)
                self.assertRegex(dynamic, r"BIND_NOW|FLAGS_1\).*NOW")
                # The plugin's is for dlopen() of its own name (plugin/own_name.cc).
                paths = re.findall(r"\((?:RPATH|RUNPATH)\).*\[(.*)\]", dynamic)
                self.assertEqual(paths, ["$ORIGIN"] if binary == "plugin/libnccl-net.so" else [],
                                 "looks for libraries in a path of its own")

    def test_the_stack_protector_and_fortify_are_in_use(self):
        for binary in BINARIES:
            with self.subTest(binary):
                symbols = readelf("--dyn-syms", BUILD / binary)
                self.assertTrue("__stack_chk_fail" in symbols, "no stack protector")
                self.assertTrue(re.search(r"__\w+_chk@", symbols), "no _FORTIFY_SOURCE")

    def test_our_objects_protect_stacks_and_mark_branches(self):
        for library in LIBRARIES:
            with self.subTest(library):
                path = BUILD / library
                self.assertTrue(path.exists())
                notes = readelf("-n", path)
                objects = notes.count("File: ")
                self.assertGreater(objects, 0)
                marks = re.findall(r"x86 feature: IBT, SHSTK|AArch64 feature: BTI, PAC", notes)
                self.assertEqual(len(marks), objects)
                if library not in WITHOUT_ARRAYS:
                    self.assertIn("__stack_chk_fail", readelf("-s", path))


if __name__ == "__main__":
    # Relative paths in a thin archive start at the build folder.
    os.chdir(BUILD)
    unittest.main(argv=sys.argv[:1])
