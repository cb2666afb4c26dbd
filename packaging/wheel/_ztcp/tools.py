# SPDX-License-Identifier: Apache-2.0
# Copyright the ztcp authors
"""The console scripts of the tools: each becomes the binary of this package."""
import os
import sys

from _ztcp.choice import package_folder


def path(name):
    return os.path.join(package_folder(), "bin", name)


def _become(name):
    os.execv(path(name), [name, *sys.argv[1:]])


def setup():
    _become("ztcp_setup")


def perf():
    _become("ztcp_perf")


def stat():
    _become("ztcp_stat")
