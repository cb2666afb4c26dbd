#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright the ztcp authors
"""Loads the plugin in a root folder with only the C library.

  bare_root.py HOST PLUGIN

The root folder holds the host program, the plugin, libc, libm, libgcc_s and the loader, and the
program runs in it. Without root a user namespace gives the right to chroot; without either the test
is skipped.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

WANTED = ("libc.so.6", "libm.so.6", "libgcc_s.so.1", "ld-linux-x86-64.so.2",
          "ld-linux-aarch64.so.1", "libdl.so.2", "libpthread.so.0")
SKIP = 77


def libraries_of(program):
    """The libraries that the loader would map, by name, on this machine."""
    text = subprocess.run(["ldd", program], check=True, capture_output=True, text=True).stdout
    found = {}
    for path in re.findall(r"(/\S+)", text):
        found[os.path.basename(path)] = path
    return found


def main():
    host, plugin = sys.argv[1:3]
    lend = [] if os.geteuid() == 0 else ["unshare", "--user", "--map-root-user"]
    if lend and subprocess.run(lend + ["true"], capture_output=True, check=False).returncode != 0:
        print("neither root nor user namespaces: no right to chroot")
        return SKIP

    with tempfile.TemporaryDirectory(prefix="ztcp-root-") as folder:
        root = pathlib.Path(folder)
        (root / "lib64").mkdir()
        (root / "lib").symlink_to("lib64")  # Where aarch64 has its loader.
        available = libraries_of(host) | libraries_of(plugin)
        for name in WANTED:
            if name in available:
                shutil.copy(available[name], root / "lib64" / name)
        shutil.copy(host, root / "host")
        shutil.copy(plugin, root / "plugin.so")
        chroot = shutil.which("chroot", path="/usr/sbin:/sbin:/usr/bin:/bin")
        return subprocess.run(
            lend + [chroot, str(root), "/host", "/plugin.so", "never_initialised"],
            env={"LD_LIBRARY_PATH": "/lib64"}, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
