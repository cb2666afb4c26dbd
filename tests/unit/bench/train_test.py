#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright the ztcp authors
"""bench/gpu/train without PyTorch: the tables it makes of results, and its processes with a
stand-in for its ranks (train_ranks.py)."""
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.dont_write_bytecode = True
TRAIN = sys.argv.pop(1)
sys.path.insert(0, os.path.dirname(TRAIN))
import training  # noqa: E402

STAND_IN = pathlib.Path(__file__).resolve().parent / "train_ranks.py"


def result(seconds, step_ms=(10.0, 20.0), losses=(2.0, 1.0)):
    windows = [{"steps": 2, "seconds": one, "step_ms": list(step_ms)} for one in seconds]
    return {"windows": windows, "losses": list(losses), "batch": 8, "cpu_s": 1.5, "start_s": 1.0,
            "parameters": 235_620_352}


def run(network, rate, losses=(2.0, 1.0), error=None, number=1):
    found = {"model": "transformer", "network": network, "title": network, "round": number,
             "error": error}
    if not error:
        found |= training.of_ranks([result([32 / rate], losses=losses)] * 2)
    return found


class Results(unittest.TestCase):
    def test_a_window_takes_as_long_as_its_slowest_rank(self):
        found = training.of_ranks([result([1.0, 2.0, 4.0], (10, 20)), result([0.5, 4.0, 4.0], (15, 5))])
        self.assertEqual(found["windows"], [32, 8, 8])
        self.assertEqual(found["samples_per_s"], 8)
        self.assertEqual(found["step_ms"], [15, 20] * 3)
        self.assertEqual(found["cpu_s"], 3)

    def test_the_loss_is_the_mean_of_the_ranks(self):
        found = training.of_ranks([result([1.0], losses=(2, 1)), result([1.0], losses=(4, 2))])
        self.assertEqual(found["losses"], [3, 1.5])

    def test_a_row_is_over_the_rounds_and_beside_stock(self):
        runs = [run("ztcp", rate) for rate in (100, 120, 110)] + [run("socket-stock", 50)]
        ours, stock = training.rows(runs)
        self.assertEqual([round(ours[name]) for name in ("median", "min", "max")], [110, 100, 120])
        self.assertAlmostEqual(ours["cv"], 10 / 110)
        self.assertAlmostEqual(ours["of_stock"], 2.2)
        self.assertEqual((stock["of_stock"], stock["runs"]), (1, 1))

    def test_a_network_without_a_good_run_has_a_row_too(self):
        runs = [run("ztcp", 100), run("ztcp-sockets", 0, error="rank 1 ended with 1")]
        lines = training.table("transformer", runs, 2)
        self.assertEqual(lines[-1].split()[-1], "0/1")
        self.assertIn("235.6 M parameters, batch 8 a rank", lines[0])

    def test_the_table_fits_120_columns(self):
        runs = [run("NCCL's sockets, 2 x 2, 16 channels", 12345.678)] * 12
        self.assertLessEqual(max(map(len, training.table("transformer-fsdp", runs, 16))), 120)

    def test_markdown_has_as_many_cells_in_each_line(self):
        lines = training.markdown("transformer", [run("ztcp", 100), run("socket-stock", 50)], 2)[2:]
        self.assertEqual({line.count("|") for line in lines}, {len(training.HEADINGS) + 1})


    def test_the_summary_has_a_row_a_model_and_a_column_a_network(self):
        by_model = {"transformer": [run("ztcp", rate) for rate in (100, 120, 110)],
                    "resnet50": [run("socket-stock", 50), run("ztcp", 0, error="hung")]}
        self.assertEqual(training.summary(by_model, 2)[2:],
                         ["| | ztcp | socket-stock |", "|---|---|---|",
                          "| Transformer, DDP | 110 (100 to 120, 9.1 %) | - |",
                          "| ResNet-50, DDP | - | 50 (50 to 50, 0.0 %) |"])


class Losses(unittest.TestCase):
    def compared(self, *losses):
        runs = [run(f"net{i}", 10, one) for i, one in enumerate(losses)]
        found = training.compare_losses(runs, 1e-3)
        return found, training.losses_text(found, 1e-3)

    def test_equal_losses_are_reported_as_equal(self):
        found, text = self.compared((2, 1), (2, 1))
        self.assertEqual(found["different"], [])
        self.assertEqual(text, "losses of the first 2 steps: equal in all 2 runs")

    def test_a_small_difference_is_reported_without_an_error(self):
        found, text = self.compared((2, 1), (2, 1.0001))
        self.assertEqual(found["different"], [])
        self.assertIn("but for 0.0001", text)

    def test_a_difference_is_an_error_by_network_and_step(self):
        found, text = self.compared((2, 1), (2, 1), (2, 1.1))
        self.assertEqual(found["different"], ["transformer over net2, round 1, step 2: loss 1.1, over net0 1"])
        self.assertIn("DIFFER in 1 of 3 runs", text)

    def test_a_loss_that_is_not_a_number_is_different(self):
        for losses in ((2.0, float("nan")), (float("nan"), 1.0)):
            found, _ = self.compared((2, 1), losses)
            self.assertEqual(len(found["different"]), 1)

    def test_losses_of_networks_that_change_them_are_listed_and_not_compared(self):
        runs = [run("ztcp", 10), run("socket-stock", 10), run("ztcp-topk", 10, (3, 1.5)) | {"changes_losses": True}]
        found = training.compare_losses(runs, 1e-3)
        self.assertEqual((found["runs"], found["different"]), (2, []))
        self.assertEqual(training.loss_lines(runs)[1:], ["socket-stock: step 1 2.0000, step 2 1.0000",
                                                         "ztcp-topk: step 1 3.0000, step 2 1.5000"])

    def test_one_run_has_nothing_to_compare_with(self):
        self.assertIn("nothing to compare with", self.compared((2, 1))[1])


def processes_with(text):
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if text in path.read_bytes().decode(errors="replace"):
                found.append(int(path.parent.name))
        except OSError:
            pass
    return found


class Processes(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.out = pathlib.Path(self.folder.name) / "train.json"
        # A separate copy, by which its processes are found.
        self.ranks = pathlib.Path(self.folder.name) / "ranks.py"
        self.ranks.write_text(STAND_IN.read_text())

    def command(self, *arguments):
        return [sys.executable, TRAIN, "--try", "--rank-program", str(self.ranks), "--out",
                str(self.out), *arguments]

    def train(self, behaviour, *arguments):
        done = subprocess.run(self.command(*arguments), env=os.environ | {"STAND_IN": behaviour},
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60,
                              check=False)
        self.assertEqual(processes_with(str(self.ranks)), [])
        return done

    def test_measures_every_round_in_processes_that_stay(self):
        done = self.train("good", "--rounds", "3", "--models", "transformer,resnet50", "--markdown")
        self.assertEqual(done.returncode, 0, done.stdout)
        document = json.loads(self.out.read_text())
        self.assertEqual(len(document["runs"]), 6)
        self.assertEqual(document["tables"]["transformer"][0]["runs"], 3)
        self.assertEqual(document["losses"]["resnet50"]["different"], [])
        self.assertIn("equal in all 3 runs", done.stdout)
        self.assertIn("| gloo |", done.stdout)

    def test_tries_the_hook_beside_the_backend_alone(self):
        done = self.train("good", "--rounds", "1", "--networks", "gloo,gloo-topk")
        self.assertEqual(done.returncode, 0, done.stdout)
        runs = json.loads(self.out.read_text())["runs"]
        self.assertEqual([(one["network"], one["changes_losses"]) for one in runs], [("gloo", False), ("gloo-topk", True)])
        self.assertIn("gloo-topk: step 1 2.0000, step 2 1.0000", done.stdout)

    def test_a_rank_that_fails_fails_its_run_alone(self):
        done = self.train("second run fails", "--rounds", "3")
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn("rank 1 ended with 3", done.stdout)
        runs = json.loads(self.out.read_text())["runs"]
        self.assertEqual([bool(one["error"]) for one in runs], [False, True, False])

    def test_a_rank_that_hangs_is_ended_after_the_case_limit(self):
        begin = time.monotonic()
        done = self.train("hangs", "--rounds", "1", "--case-limit", "2")
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn("not done within 2 s", done.stdout)
        self.assertLess(time.monotonic() - begin, 30)

    def test_losses_that_differ_are_an_error(self):
        done = self.train("losses differ", "--rounds", "2")
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn("DIFFER in 1 of 2 runs", done.stdout)

    def test_the_limit_ends_between_runs(self):
        done = self.train("good", "--rounds", "1000", "--limit", "3")
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn("--limit 3: ended in round", done.stdout)

    def test_a_program_that_does_not_start_is_reported_with_its_output(self):
        done = self.train("does not start")
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn("No module named 'torch'", done.stdout)

    def test_an_interrupt_ends_all_processes_and_keeps_the_results(self):
        for number, behaviour in ((signal.SIGINT, "good"), (signal.SIGTERM, "hangs")):
            process = subprocess.Popen(self.command("--rounds", "1000"), text=True,
                                       env=os.environ | {"STAND_IN": behaviour},
                                       stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            while behaviour == "good" and "3/1000" not in (line := process.stdout.readline()):
                self.assertNotEqual(line, "")
            while len(processes_with(str(self.ranks))) < 3:  # The command itself, and two ranks.
                time.sleep(0.05)
            process.send_signal(number)
            output, _ = process.communicate(timeout=60)
            self.assertEqual(process.returncode, 130, output)
            self.assertIn("interrupted", output)
            self.assertEqual(processes_with(str(self.ranks)), [])
        self.assertIn("interrupted", json.loads(self.out.read_text())["notes"])

    def on_gpus(self, behaviour, *arguments):
        """As on a machine with two GPUs, over networks that need no build."""
        tools = pathlib.Path(self.folder.name) / "bin"
        tools.mkdir(exist_ok=True)
        (tools / "nvidia-smi").write_text("#!/bin/sh\necho H100\necho H100\n")
        (tools / "nvidia-smi").chmod(0o755)
        library = pathlib.Path(self.folder.name) / "libfast.so"
        library.touch()
        command = [one for one in self.command(*arguments) if one != "--try"]
        return subprocess.run(
            [*command, "--peer", f"fastsocket={library}", "--networks", "socket-stock,fastsocket"],
            env=os.environ | {"STAND_IN": behaviour, "PATH": f"{tools}:{os.environ['PATH']}"},
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60, check=False)

    def test_networks_take_turns_in_reverse_order_in_every_other_round(self):
        done = self.on_gpus("good", "--rounds", "3")
        self.assertEqual(done.returncode, 0, done.stdout)
        document = json.loads(self.out.read_text())
        a, b = "socket-stock", "fastsocket"
        self.assertEqual([one["network"] for one in document["runs"]], [a, b, b, a, a, b])
        self.assertEqual([row["of_stock"] for row in document["tables"]["transformer"]], [1, 1])
        self.assertEqual(document["gpus"], ["H100", "H100"])

    def test_a_run_over_another_network_than_asked_for_is_an_error(self):
        done = self.on_gpus("another network", "--rounds", "1")
        self.assertEqual(done.returncode, 1, done.stdout)
        for network in ("Socket", "FastSocket"):
            self.assertIn(f"NCCL did not use NET/{network}\n", done.stdout)
        self.assertIn("NCCL WARN of it", done.stdout)

    def test_more_ranks_than_gpus_are_refused(self):
        done = self.on_gpus("good", "--ranks", "3")
        self.assertEqual(done.returncode, 2)
        self.assertIn("--ranks 3 needs as many GPUs; there are 2", done.stdout)

    def test_unknown_names_are_refused_with_those_there_are(self):
        for arguments, text in ((["--models", "bert"], "no model bert: there are resnet50"),
                                (["--networks", "tokenring"], "no network tokenring: there are ztcp"),
                                (["--networks", "fastsocket"], "needs --peer fastsocket=FILE"),
                                (["--try", "--networks", "ztcp"], "no network ztcp with --try: there are gloo, gloo-topk"),
                                (["--networks", "socket-stock", "--rate", "25"], "of --veth MTU, which is missing"),
                                (["--networks", "socket-stock", "--veth", "9000", "--ranks", "3"], "wants 2 ranks"),
                                (["--networks", "socket-stock", "--topk", "2"], "a share of the gradients: at most 1"),
                                (["--ranks", "1"], "must be at least 2")):
            done = subprocess.run([sys.executable, TRAIN, *arguments], stderr=subprocess.PIPE, text=True,
                                  timeout=60, check=False)
            self.assertEqual(done.returncode, 2)
            self.assertIn(text, done.stderr)


if __name__ == "__main__":
    unittest.main()
