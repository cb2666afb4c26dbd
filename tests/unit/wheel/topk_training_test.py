#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright the ztcp authors
"""The wheel's top-k hook in PyTorch: two ranks over gloo on the CPU train a small model."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
WHEEL = pathlib.Path(__file__).resolve().parents[3] / "packaging/wheel"
sys.path.insert(0, str(WHEEL))
RANKS = 2
STEPS = 600
CASES = ("dense", "feedback", "no feedback")
# The margins of this test; a run with feedback is some steps behind the dense one.
MOST_OF_DENSE = 1.25
LEAST_WITHOUT_FEEDBACK = 4

try:
    import torch
    import torch.distributed
    from torch.nn.parallel import DistributedDataParallel
except ImportError as missing:
    print(f"PyTorch is not there: {missing}")
    sys.exit(77)

from _ztcp.topk import topk  # noqa: E402


def network(dtype=torch.float32):
    return torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.Tanh(), torch.nn.Linear(64, 8)).to(dtype)


def in_parallel(hook, dtype=torch.float32):
    """A model of several buckets, the same for each hook."""
    torch.manual_seed(2)
    model = DistributedDataParallel(network(dtype), bucket_cap_mb=0.002)
    if hook is not None:
        model.register_comm_hook(None, hook)
    return model


def train(rank, hook):
    """The loss at the end, over both ranks' data, and a sum over all parameters of this rank."""
    torch.manual_seed(1)
    teacher = network()
    model = in_parallel(hook)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    generator = torch.Generator().manual_seed(rank + 10)
    # Gradients of very different sizes: those of the last inputs are small.
    inputs = [torch.randn(64, 32, generator=generator) * torch.logspace(0, -1, 32) for _ in range(8)]
    with torch.no_grad():
        wanted = [5 * teacher(one) for one in inputs]
    for step in range(STEPS):
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(model(inputs[step % 8]), wanted[step % 8]).backward()
        optimizer.step()
    with torch.no_grad():
        losses = [torch.nn.functional.mse_loss(model.module(a), b) for a, b in zip(inputs, wanted)]
    loss = torch.stack(losses).mean()
    torch.distributed.all_reduce(loss)
    bits = [p.detach().view(torch.int32).long().sum().item() for p in model.parameters()]
    return float(loss) / RANKS, bits


def gradients(rank, hook, dtype):
    """Of the second step: DDP forms its buckets anew after the first one."""
    model = in_parallel(hook, dtype)
    inputs = torch.randn(16, 32, generator=torch.Generator().manual_seed(rank)).to(dtype)
    for _ in range(2):
        model.zero_grad()
        model(inputs).float().square().mean().backward()
    return torch.cat([p.grad.flatten().double() for p in model.parameters()])


def farthest(rank, hook, dtype):
    """The largest difference from the gradients without a hook, as a part of the largest of these."""
    dense = gradients(rank, None, dtype)
    return float((gradients(rank, hook, dtype) - dense).abs().max() / dense.abs().max())


def run_rank(rank, folder):
    store = torch.distributed.FileStore(f"{folder}/store", RANKS)
    torch.distributed.init_process_group("gloo", rank=rank, world_size=RANKS, store=store)
    torch.set_num_threads(1)
    alone = [torch.distributed.new_group([one]) for one in range(RANKS)][rank]
    hooks = (None, topk(0.01), topk(0.01, feedback=False))
    found = {name: train(rank, hook) for name, hook in zip(CASES, hooks)}
    # All gradients are sent: as without a hook, but for the order of sums.
    found |= {f"all as {name}": farthest(rank, topk(1), getattr(torch, name))
              for name in ("float32", "float64")}
    found["alone"] = topk(0.5)(alone, Gradients(torch.arange(4.0))).wait().tolist()
    # Rank 0 has 0, 2, 3, 4, rank 1 twice that; each sends its two largest.
    hook, found["bfloat16"] = topk(0.5), []
    for _ in range(2):
        own = Gradients((torch.tensor([0, 2, 3, 4]) * (rank + 1)).bfloat16())
        found["bfloat16"].append(hook(None, own).wait().tolist())
    (pathlib.Path(folder) / f"rank{rank}.json").write_text(json.dumps(found))
    torch.distributed.barrier()
    torch.distributed.destroy_process_group()


class Gradients:
    """Stands for a bucket."""

    def __init__(self, values):
        self.values = values

    def index(self):
        return 0

    def parameters(self):
        return []

    def buffer(self):
        return self.values


class Training(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory() as folder:
            environment = {**os.environ, "GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1"}
            ranks = [subprocess.Popen([sys.executable, __file__, str(rank), folder], env=environment)
                     for rank in range(RANKS)]
            try:
                statuses = [rank.wait(240) for rank in ranks]
            finally:
                for rank in ranks:
                    rank.kill()
            assert statuses == [0] * RANKS, statuses
            cls.found = [json.loads((pathlib.Path(folder) / f"rank{rank}.json").read_text()) for rank in range(RANKS)]
        cls.losses = {name: value[0] for name, value in cls.found[0].items() if name in CASES}
        print(cls.losses)

    def test_with_feedback_the_loss_is_near_that_of_all_gradients(self):
        self.assertLess(self.losses["feedback"], MOST_OF_DENSE * self.losses["dense"])

    def test_without_feedback_the_loss_is_far_from_it(self):
        self.assertGreater(self.losses["no feedback"], LEAST_WITHOUT_FEEDBACK * self.losses["feedback"])

    def test_all_ranks_have_the_same_parameters(self):
        for name in self.losses:
            self.assertEqual(self.found[0][name], self.found[1][name], name)

    def test_a_ratio_of_1_gives_the_mean_of_all_gradients(self):
        for name, most in (("float32", 1e-6), ("float64", 1e-12)):
            self.assertLess(self.found[0][f"all as {name}"], most, name)

    def test_gradients_of_16_bits_are_summed_and_kept_as_32(self):
        for found in self.found:
            self.assertEqual(found["bfloat16"], [[0, 0, 4.5, 6], [0, 6, 0, 6]])

    def test_a_rank_alone_keeps_its_gradients(self):
        self.assertEqual(self.found[1]["alone"], [0, 1, 2, 3])


if __name__ == "__main__":
    if len(sys.argv) == 3:
        run_rank(int(sys.argv[1]), sys.argv[2])
    else:
        unittest.main()
