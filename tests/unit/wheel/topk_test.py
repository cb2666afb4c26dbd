#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright the ztcp authors
"""The wheel's top-k hook without PyTorch: its choice of gradients, its feedback and its sums."""
import math
import pathlib
import subprocess
import sys
import unittest

sys.dont_write_bytecode = True
WHEEL = pathlib.Path(__file__).resolve().parents[3] / "packaging/wheel"
sys.path.insert(0, str(WHEEL))
from _ztcp import topk  # noqa: E402


class Vector:
    """Stands for a tensor of one dimension, with the operations that the hook's arithmetic uses."""

    def __init__(self, values):
        self.values = list(values)

    def abs(self):
        return Vector(map(abs, self.values))

    def topk(self, count, sorted):
        order = sorted_by(self.values, lambda value: math.inf if math.isnan(value) else value)
        return None, Vector(order[:count])

    def index_select(self, _, indices):
        return Vector(self.values[index] for index in indices.values)

    def index_fill_(self, _, indices, value):
        for index in indices.values:
            self.values[index] = value
        return self

    def index_add_(self, _, indices, values):
        for index, value in zip(indices.values, values.values):
            self.values[index] += value
        return self

    def add_(self, other):
        self.values = [a + b for a, b in zip(self.values, other.values)]
        return self

    def nan_to_num_(self, *_):
        self.values = [value if math.isfinite(value) else 0 for value in self.values]
        return self

    def zero_(self):
        self.values = [0] * len(self.values)
        return self

    def div_(self, number):
        self.values = [value / number for value in self.values]
        return self


def sorted_by(values, key):
    return sorted(range(len(values)), key=lambda index: key(values[index]), reverse=True)


def pairs(chosen):
    return sorted(zip(chosen[0].values, chosen[1].values))


class Choice(unittest.TestCase):
    def test_the_largest_magnitudes_are_sent(self):
        bucket = topk.Bucket(2, None, None)
        self.assertEqual(pairs(bucket.choose(Vector([1, -5, 3, 4]))), [(1, -5), (3, 4)])

    def test_gradients_that_were_not_sent_are_added_to_the_next(self):
        bucket = topk.Bucket(1, Vector([0, 0, 0]), None)
        self.assertEqual(pairs(bucket.choose(Vector([5, 2, 1]))), [(0, 5)])
        self.assertEqual(bucket.unsent.values, [0, 2, 1])
        self.assertEqual(pairs(bucket.choose(Vector([3, 2, 1]))), [(1, 4)])
        self.assertEqual(bucket.unsent.values, [3, 0, 2])

    def test_with_feedback_every_gradient_is_sent_at_last(self):
        bucket = topk.Bucket(1, Vector([0] * 8), None)
        sent = [0] * 8
        for step in range(100):
            for index, value in pairs(bucket.choose(Vector(range(1, 9)))):
                sent[index] += value
        for index in range(8):
            self.assertEqual(sent[index] + bucket.unsent.values[index], 100 * (index + 1))
            self.assertGreater(sent[index], 0)

    def test_without_feedback_nothing_is_kept(self):
        bucket = topk.Bucket(1, None, None)
        for _ in range(2):
            self.assertEqual(pairs(bucket.choose(Vector([2, 1]))), [(0, 2)])

    def test_an_overflow_is_sent_and_not_kept(self):
        bucket = topk.Bucket(1, Vector([0, 0, 0]), None)
        self.assertEqual(pairs(bucket.choose(Vector([1, math.inf, -math.inf])))[0][0], 1)
        self.assertEqual(bucket.unsent.values, [1, 0, 0])

    def test_the_result_is_the_mean_of_all_ranks(self):
        out = topk.average(Vector([9, 9, 9]), [(Vector([0]), Vector([4])), (Vector([0, 2]), Vector([2, 1]))])
        self.assertEqual(out.values, [3, 0, 0.5])


class Arguments(unittest.TestCase):
    def test_a_ratio_out_of_range_is_refused(self):
        for ratio in (0, -0.1, 1.01, math.nan, math.inf, "0.01", None, True):
            with self.assertRaisesRegex(ValueError, "share of gradients to send, a number above 0 and at most 1"):
                topk.topk(ratio=ratio)
        for ratio in (1e-9, 0.5, 1):
            self.assertEqual(topk.checked(ratio), ratio)

    def test_without_pytorch_the_error_says_so(self):
        program = """
import sys
sys.modules["torch"] = None
import _ztcp.topk
try:
    _ztcp.topk.topk()
except ImportError as error:
    print(error)"""
        said = subprocess.run([sys.executable, "-B", "-c", program], capture_output=True, text=True, check=True,
                              cwd=WHEEL, timeout=60).stdout
        self.assertIn("ztcp.hooks.topk is a hook of PyTorch, which cannot be imported", said)

    def test_the_import_of_ztcp_imports_no_pytorch(self):
        program = "import sys, ztcp; print(callable(ztcp.hooks.topk), 'torch' in sys.modules)"
        said = subprocess.run([sys.executable, "-B", "-c", program], capture_output=True, text=True, check=True,
                              cwd=WHEEL, timeout=60, env={"ZTCP": "off"}).stdout
        self.assertEqual(said, "True False\n")


if __name__ == "__main__":
    unittest.main()
