#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright the ztcp authors
"""Which docker command packaging/container/run makes of a host's config."""
import os
import pathlib
import shlex
import subprocess
import tempfile
import unittest

RUN = pathlib.Path(__file__).resolve().parents[2] / "packaging/container/run"
NIC = '[[nic]]\nname = "ztcp{i}"\ndriver = "pci"\npci = "0000:0{i}:00.0"\n'


class Container(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name).resolve()
        self.config = self.folder / "ztcp.conf"
        for i in (1, 2):
            device = self.folder / f"sys/bus/pci/devices/0000:0{i}:00.0"
            device.mkdir(parents=True)
            (device / "iommu_group").symlink_to(f"../../../kernel/iommu_groups/4{i}")
            (self.folder / f"sys/bus/kernel/iommu_groups/4{i}").mkdir(parents=True)

    def run_it(self, text, *more):
        self.config.write_text(text)
        return subprocess.run(
            [RUN, "--dry-run", "--config", self.config, "image", "train.py", *more],
            env=os.environ | {"SYSFS": str(self.folder / "sys")}, capture_output=True, text=True,
            check=False)

    def words(self, text):
        done = self.run_it(text)
        self.assertEqual(done.returncode, 0, done.stderr)
        return shlex.split(done.stdout)

    def test_a_host_with_an_iommu_needs_no_privilege(self):
        words = self.words('schema = 1\n[host]\nclass = "iommu"\n' + NIC.format(i=1) + NIC.format(i=2))
        devices = [words[i + 1] for i, w in enumerate(words) if w == "--device"]
        self.assertEqual(devices, ["/dev/vfio/41", "/dev/vfio/42", "/dev/vfio/vfio"])
        self.assertNotIn("--privileged", words)
        self.assertNotIn("--cap-add", words)
        self.assertIn(f"{os.getuid()}:{os.getgid()}", words)
        self.assertIn(f"{self.folder}:{self.folder}:ro", words)
        self.assertIn("/usr/local/tfabric/tools/run:/usr/local/tfabric/tools/run", words)
        self.assertIn("memlock=-1", words)
        self.assertNotIn("--gpus", words)
        self.assertEqual(words[-2:], ["image", "train.py"])

    def test_gpus_are_passed_where_there_are_any(self):
        (self.folder / "sys/bus/pci/drivers/nvidia").mkdir(parents=True)
        words = self.words('schema = 1\n[host]\nclass = "iommu"\n' + NIC.format(i=1))
        self.assertEqual(words[words.index("--gpus") + 1], "all")

    def test_a_host_without_one_says_what_that_means(self):
        done = self.run_it('schema = 1\n[host]\nclass = "no-iommu"\n' + NIC.format(i=1))
        self.assertIn("can reach all of the machine's memory", done.stderr)
        words = shlex.split(done.stdout)
        self.assertIn("/dev/vfio/noiommu-41", words)
        self.assertEqual([words[i + 1] for i, w in enumerate(words) if w == "--cap-add"],
                         ["SYS_RAWIO", "SYS_ADMIN"])

    def test_shared_memory_needs_its_folder_writable_and_no_device(self):
        words = self.words('schema = 1\nrun_dir = "run"\n[[nic]]\ndriver = "memif"\n')
        self.assertNotIn("--device", words)
        self.assertIn(f"{self.folder}:{self.folder}", words)
        self.assertIn(f"{self.folder}/run:{self.folder}/run", words)

    def test_refuses_a_nic_that_is_not_there_and_a_missing_config(self):
        done = self.run_it('schema = 1\n[host]\nclass = "iommu"\n' + NIC.format(i=7))
        self.assertEqual(done.returncode, 1)
        self.assertIn("0000:07:00.0", done.stderr)
        self.config.unlink()
        done = subprocess.run([RUN, "--dry-run", "--config", self.config, "image"], capture_output=True,
                              text=True, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("run ztcp_setup", done.stderr)


if __name__ == "__main__":
    unittest.main()
