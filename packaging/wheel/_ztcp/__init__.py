# SPDX-License-Identifier: Apache-2.0
# Copyright the ztcp authors
"""The parts of the package ztcp that need no import of ztcp itself, which would switch it on."""

__version__ = "@VERSION@"
