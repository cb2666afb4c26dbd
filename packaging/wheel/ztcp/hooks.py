# SPDX-License-Identifier: Apache-2.0
# Copyright the ztcp authors
"""Communication hooks for PyTorch's DistributedDataParallel. Importing this imports no PyTorch."""
from _ztcp.topk import topk

__all__ = ["topk"]
