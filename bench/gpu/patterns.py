# SPDX-License-Identifier: Apache-2.0
# Copyright the ztcp authors
"""The data that ranks send, so that each element can be checked."""
import torch


def pattern(count, rank, salt, device):
    """Small integers: sums over ranks are exact in float32, so equality is the test."""
    index = torch.arange(count, device=device, dtype=torch.int64)
    return ((index * 7 + rank * 131 + salt * 17) % 251).to(torch.float32)
