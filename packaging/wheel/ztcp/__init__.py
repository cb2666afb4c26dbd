# SPDX-License-Identifier: Apache-2.0
# Copyright the ztcp authors
"""Switches the ztcp network plugin on in this process.

    import ztcp    # before NCCL starts

loads libnccl-net.so and sets the variables that NCCL reads, but none that is already set. NCCL of
this process then takes ztcp for its network. `python -m ztcp env` prints the same variables for a
shell, `ztcp run -- COMMAND` starts a command with them, and `ztcp check` tells whether this host is
ready. With ZTCP=off the import does nothing.

ztcp.hooks has communication hooks for PyTorch's DistributedDataParallel.
"""
import ctypes
import os
import sys
import warnings

from _ztcp import __version__
from _ztcp.choice import Choice, choose, library_path
from ztcp import hooks

__all__ = ["Choice", "__version__", "choice", "hooks", "library_path"]

#: The variables that the import has set, and why; None where it has set nothing.
choice = None


def _switch_on():
    torch = sys.modules.get("torch.distributed")
    if torch is not None and torch.is_available() and torch.is_initialized():
        warnings.warn("ztcp was imported after torch.distributed.init_process_group(), so NCCL may "
                      "run without it; import ztcp first", RuntimeWarning, stacklevel=3)
    made = choose(os.environ)
    if made.refused:
        warnings.warn(f"ztcp is not switched on: {made.refused}", RuntimeWarning, stacklevel=3)
        return None
    os.environ.update(made.variables)
    # NCCL before 2.21 takes no path, but finds a library of this name that is already loaded.
    ctypes.CDLL(library_path())
    return made


# `python -m ztcp` imports this package, too, and starts no job.
if os.environ.get("ZTCP") != "off" and sys.argv[:1] != ["-m"]:
    choice = _switch_on()
