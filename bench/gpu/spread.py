# SPDX-License-Identifier: Apache-2.0
# Copyright the ztcp authors
"""The spread of measured values: percentiles and the coefficient of variation."""
import math
import statistics

# Fewer samples than this have no 99.9th percentile.
SAMPLES_FOR_P999 = 1000
FIELDS = ("min", "p50", "p99", "p99.9", "max", "mean", "cv")


def percentile(ordered, share):
    """Nearest rank: the smallest value that at least `share` of the values do not exceed."""
    return ordered[max(math.ceil(share * len(ordered) - 1e-9), 1) - 1]


def variation(values):
    """Standard deviation over mean, of a sample; 0 for one value, None for none or a mean of 0."""
    if not values or not (mean := statistics.fmean(values)):
        return None
    return statistics.stdev(values) / mean if len(values) > 1 else 0.0


def summarise(values):
    """The FIELDS of at least one value; "p99.9" is None below SAMPLES_FOR_P999 values."""
    ordered = sorted(values)
    return {"min": ordered[0], "p50": percentile(ordered, 0.5), "p99": percentile(ordered, 0.99),
            "p99.9": percentile(ordered, 0.999) if len(ordered) >= SAMPLES_FOR_P999 else None,
            "max": ordered[-1], "mean": statistics.fmean(ordered), "cv": variation(ordered)}


def slowest(of_ranks):
    """For each iteration the time of the slowest rank: a collective is done when all are."""
    return [max(times) for times in zip(*of_ranks, strict=True)]
