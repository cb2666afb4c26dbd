#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright the ztcp authors
"""Checks the docker command that packaging/container/run makes of a host's config, and that the
lines of docs/containers.md are the same or give at least as much."""
import os
import pathlib
import shlex
import subprocess
import tempfile
import unittest

PACKAGING = pathlib.Path(__file__).resolve().parents[2] / "packaging"
RUN = PACKAGING / "container/run"
PAGE = PACKAGING.parent / "docs/containers.md"
HOME = "/usr/local/tfabric/tools"  # Set-up's folder of config and locks.
FLAGS = {"--rm", "--privileged", "-it", "-d"}
NIC = '[[nic]]\nname = "ztcp{i}"\ndriver = "pci"\npci = "0000:0{i}:00.0"\n'


def docker_lines(document):
    """The docker run lines of a document."""
    text = document.read_text().replace("\\\n", " ")
    return [shlex.split(line) for line in text.splitlines() if line.startswith("    docker run ")]


def options(words):
    """(option, value) of each option of a docker run line; None where it takes none."""
    assert words[:2] == ["docker", "run"]
    found, at = [], 2
    while words[at].startswith("-"):
        option, equals, value = words[at].partition("=")
        at += 1
        if not equals and option not in FLAGS:
            value = words[at]
            at += 1
        found.append(({"--net": "--network"}.get(option, option), None if option in FLAGS else value))
    return found


def shows(given, path, target):
    """True if a line mounts the host's `path` as `target` in the container, writable."""
    for option, value in given:
        source, _, seen = value.partition(":") if option == "-v" else ("", "", "")
        source, seen = source.rstrip("/"), seen.rstrip("/")
        if source and (path + "/").startswith(source + "/") and target == seen + path[len(source):]:
            return True
    return False


def lacks(given, wanted):
    """(option, value) of each wanted option that a line does not give in some form."""
    mighty = ("--privileged", None) in given and not any(option == "--user" for option, _ in given)
    for option, value in wanted:
        if option == "-v":
            source, target = value.split(":")[:2]
            # Without the host's machine id the container is not compared with the config's.
            ok = shows(given, source, target) or source == "/etc/machine-id"
        elif option == "--device":
            ok = mighty and shows(given, value, value)
        elif option == "--ipc":
            ok = shows(given, "/dev/shm", "/dev/shm")
        elif option in ("--cap-add", "--user", "--group-add") or value == "memlock=-1":
            ok = mighty  # Root with CAP_IPC_LOCK has no limit of locked memory.
        else:
            # More stack for rank processes, which ztcp does not need; the config's default place.
            ok = (option, value) in given or value in ("stack=67108864", f"ZTCP_CONFIG={HOME}/config/ztcp.conf")
        if not ok and option != "--rm":
            yield option, value


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

    def test_rdma_devices_are_passed_in(self):
        words = self.words('schema = 1\n[[nic]]\nname = "ztcp0"\ndriver = "verbs"\ndevice = "mlx5_0"\n')
        self.assertEqual([words[i + 1] for i, w in enumerate(words) if w == "--device"], ["/dev/infiniband"])
        volumes = [words[i + 1].split(":")[0] for i, w in enumerate(words) if w == "-v"]
        self.assertEqual(volumes, [str(self.folder), "/etc/machine-id"], "no folder for locks, which set-up does not make here")
        self.assertIn("memlock=-1", words)

    def test_gpus_are_passed_where_there_are_any(self):
        (self.folder / "sys/bus/pci/drivers/nvidia").mkdir(parents=True)
        words = self.words('schema = 1\n[host]\nclass = "iommu"\n' + NIC.format(i=1))
        self.assertEqual(words[words.index("--gpus") + 1], "all")

    def test_a_host_without_an_iommu_warns_of_memory_access(self):
        done = self.run_it('schema = 1\n[host]\nclass = "no-iommu"\n' + NIC.format(i=1))
        self.assertIn("can reach all of the machine's memory", done.stderr)
        words = shlex.split(done.stdout)
        self.assertIn("/dev/vfio/noiommu-41", words)
        self.assertEqual([words[i + 1] for i, w in enumerate(words) if w == "--cap-add"],
                         ["SYS_RAWIO", "SYS_ADMIN"])

    def documented(self, host_class):
        """(option, value) of the document's line for a kind of host."""
        (self.folder / "sys/bus/pci/drivers/nvidia").mkdir(parents=True, exist_ok=True)
        words = self.words(f'schema = 1\n[host]\nclass = "{host_class}"\n' + NIC.format(i=1) + NIC.format(i=2))
        return options([word.replace(str(self.folder), HOME + "/config") for word in words])

    def test_the_operators_document_shows_the_generated_line(self):
        line = docker_lines(PAGE)[0]
        who = ("--user", "--group-add")
        self.assertEqual([pair for pair in options(line) if pair[0] not in who],
                         [pair for pair in self.documented("iommu") if pair[0] not in who])

    def test_a_line_for_harp_gives_all_that_ztcp_needs(self):
        given = options(docker_lines(PAGE)[1])
        for host_class in ("iommu", "no-iommu"):
            self.assertEqual(list(lacks(given, self.documented(host_class))), [])

    def test_missing_options_of_a_line_are_found(self):
        given = options(docker_lines(PAGE)[1])
        for missing, lacking in ((("--privileged", None), "--device"), (("--network", "host"), "--network"),
                                 (("-v", "/dev/:/dev/"), "--ipc"), (("-v", f"{HOME}:{HOME}"), "-v"),
                                 (("--gpus", "all"), "--gpus")):
            self.assertIn(missing, given)
            self.assertIn(lacking, [option for option, _ in lacks([pair for pair in given if pair != missing],
                                                                  self.documented("iommu"))])

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
