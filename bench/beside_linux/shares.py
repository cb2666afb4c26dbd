# SPDX-License-Identifier: Apache-2.0
# Copyright the ztcp authors
"""Goodput, fairness and the time to a share, from the (time, bytes) of receivers. Pure."""
import bisect


def bytes_at(series, when):
    """All bytes until then, in proportion between two records."""
    after = bisect.bisect_right(series, when, key=lambda point: point[0])
    if after == 0:
        return 0.0
    if after == len(series):
        return float(series[-1][1])
    (from_s, from_bytes), (to_s, to_bytes) = series[after - 1], series[after]
    return from_bytes + (to_bytes - from_bytes) * (when - from_s) / (to_s - from_s)


def goodput_mbit(series, from_s, to_s):
    return (bytes_at(series, to_s) - bytes_at(series, from_s)) * 8 / 1e6 / (to_s - from_s)


def jain(rates):
    """1: all equal; 1/n: one has everything; None where nothing moved."""
    squares = sum(rate * rate for rate in rates)
    return sum(rates) ** 2 / (len(rates) * squares) if squares else None


def windows(from_s, to_s, width_s):
    count = int((to_s - from_s) / width_s + 1e-9)
    return [(from_s + i * width_s, from_s + (i + 1) * width_s) for i in range(count)]


def jain_of_windows(all_series, from_s, to_s, width_s):
    indices = (jain([goodput_mbit(series, *window) for series in all_series]) for window in windows(from_s, to_s, width_s))
    return [index for index in indices if index is not None]


def time_to_share_s(series, share_mbit, to_s, width_s=0.1, step_s=0.02):
    """From the first bytes to the end of the first window with the share; None: never."""
    if not series:
        return None
    began = series[0][0]
    for i in range(int((to_s - began - width_s) / step_s) + 1):
        at = began + i * step_s
        if goodput_mbit(series, at, at + width_s) >= share_mbit:
            return i * step_s + width_s
    return None
