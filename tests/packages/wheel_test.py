#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright the ztcp authors
"""Builds the wheel, installs it into a virtual environment without a network, and uses it.

  wheel_test.py BUILD
"""
import base64
import csv
import hashlib
import io
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "build").resolve()
VARIABLES = ("NCCL_NET", "NCCL_NET_PLUGIN", "ZTCP_TRANSPORT", "ZTCP_CONFIG", "ZTCP", "LD_LIBRARY_PATH", "PYTHONPATH")
MOST_BYTES = 8_700_000


class Wheel(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.home = pathlib.Path(cls.folder.name)
        subprocess.run([ROOT / "packaging/build-wheel", "--build", BUILD, "--out", cls.home], check=True,
                       stdout=subprocess.DEVNULL)
        cls.wheel = next(cls.home.glob("ztcp-*.whl"))
        cls.bin = cls.home / "venv/bin"
        subprocess.run([sys.executable, "-m", "venv", cls.home / "venv"], check=True)
        subprocess.run([cls.bin / "pip", "install", "--quiet", "--no-index", "--disable-pip-version-check", cls.wheel],
                       check=True)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def run_in(self, *command, status=0, **environment):
        """Runs a command of the virtual environment, with these variables of ours and no others."""
        own = {name: value for name, value in os.environ.items() if name not in VARIABLES}
        done = subprocess.run([self.bin / command[0], *command[1:]], capture_output=True, text=True, timeout=120,
                              check=False, cwd="/", env={**own, **environment})
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def choose(self, arguments, **environment):
        program = f"from _ztcp.choice import choose; made = choose({environment!r}, {arguments}); print(made)"
        return self.run_in("python", "-c", program)

    def test_has_the_tag_of_the_architecture_that_its_binaries_are_for(self):
        with zipfile.ZipFile(self.wheel) as file:
            tags = re.findall(r"^Tag: (.*)$", file.read(next(n for n in file.namelist() if n.endswith("/WHEEL"))).decode(),
                              re.M)
            binary = self.home / "libnccl-net.so"
            binary.write_bytes(file.read("_ztcp/bin/libnccl-net.so"))
        arch = subprocess.run([ROOT / "packaging/arch", binary], check=True, capture_output=True, text=True).stdout.strip()
        self.assertEqual(tags, [f"py3-none-manylinux_2_34_{arch}"])
        self.assertTrue(self.wheel.name.endswith(f"-{tags[0]}.whl"), self.wheel.name)

    def test_is_small_and_lists_every_file_with_its_hash(self):
        self.assertLess(self.wheel.stat().st_size, MOST_BYTES)
        with zipfile.ZipFile(self.wheel) as file:
            names = set(file.namelist())
            record = next(name for name in names if name.endswith("/RECORD"))
            rows = list(csv.reader(io.StringIO(file.read(record).decode())))
            self.assertEqual({row[0] for row in rows}, names)
            for name, digest, size in rows:
                if name == record:
                    continue
                data = file.read(name)
                told = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
                self.assertEqual((digest, int(size)), (f"sha256={told}", len(data)), name)
            self.assertIn("_ztcp/bin/libnccl-net.so", names)
            self.assertTrue(any(name.endswith("sbom.spdx.json") for name in names))

    def test_the_import_sets_the_variables_and_loads_the_plugin(self):
        program = """
import ctypes, os
import ztcp
print(os.environ["NCCL_NET"], os.environ["NCCL_NET_PLUGIN"] == ztcp.library_path(), os.environ["ZTCP_TRANSPORT"])
# As NCCL before 2.21 opens it.
print(hasattr(ctypes.CDLL("libnccl-net.so"), "ncclNetPlugin_v12"), ztcp.__version__)"""
        version = self.run_in("ztcp", "--version").split()[-1]
        said = self.run_in("python", "-c", program).split()
        self.assertEqual(said[:2] + said[3:], ["ztcp", "True", "True", version])

    def test_the_import_changes_no_variable_of_the_user(self):
        program = "import os, ztcp; print(os.environ['NCCL_NET_PLUGIN'], os.environ['ZTCP_TRANSPORT'])"
        said = self.run_in("python", "-c", program, NCCL_NET_PLUGIN="ztcp", ZTCP_TRANSPORT="ustack")
        self.assertEqual(said, "ztcp ustack\n")

    def test_the_import_steps_back_for_another_network(self):
        program = "import os, ztcp; print(ztcp.choice, os.environ.get('NCCL_NET_PLUGIN'))"
        for name, value in (("NCCL_NET", "Socket"), ("NCCL_NET_PLUGIN", "aws-ofi")):
            said = self.run_in("python", "-W", "always", "-c", program, **{name: value})
            self.assertIn(f"ztcp is not switched on: {name}={value} chooses another network; unset {name}", said)
            self.assertIn("None", said)

    def test_the_import_does_nothing_when_it_is_off(self):
        said = self.run_in("python", "-c", "import os, ztcp; print(ztcp.choice, 'NCCL_NET' in os.environ)", ZTCP="off")
        self.assertEqual(said, "None False\n")

    def test_the_import_warns_when_it_is_too_late(self):
        program = """
import sys, types
sys.modules["torch.distributed"] = types.SimpleNamespace(is_available=lambda: True, is_initialized=lambda: True)
import ztcp"""
        self.assertIn("import ztcp first", self.run_in("python", "-c", program))

    def test_the_hooks_need_pytorch_only_when_they_are_made(self):
        program = """
import sys, ztcp
sys.modules["torch"] = None
try:
    ztcp.hooks.topk(ratio=0.01, feedback=True)
except ImportError as error:
    print(error)"""
        self.assertIn("a hook of PyTorch, which cannot be imported", self.run_in("python", "-c", program))
        self.assertEqual(self.run_in("python", "-c", "import sys, ztcp; print('torch' in sys.modules)"), "False\n")

    def test_env_is_a_script_that_sets_the_same(self):
        script = self.run_in("python", "-m", "ztcp", "env")
        said = subprocess.run(["sh", "-c", f"{script}\necho $NCCL_NET $NCCL_NET_PLUGIN"], capture_output=True, text=True,
                              check=True).stdout.split()
        self.assertEqual(said, ["ztcp", self.run_in("ztcp", "path").strip()])
        self.assertEqual(json.loads(self.run_in("ztcp", "env", "--json"))["variables"]["NCCL_NET"], "ztcp")
        self.assertIn("export ZTCP_TRANSPORT=verbs", self.run_in("ztcp", "env", "--transport", "verbs"))
        self.assertIn("unset NCCL_NET", self.run_in("ztcp", "env", status=1, NCCL_NET="Socket"))

    def test_the_transport_is_chosen_by_config_and_rdma_ports(self):
        self.assertIn("'ZTCP_TRANSPORT': 'sockets'", self.choose("rdma_ports=[]"))
        self.assertIn("'ZTCP_TRANSPORT': 'verbs'", self.choose("rdma_ports=['mlx5_0/1']"))
        self.assertIn("mlx5_0/1 is active", self.choose("rdma_ports=['mlx5_0/1']"))
        said = self.choose("rdma_ports=['mlx5_0/1']", ZTCP_CONFIG="/dev/null")
        self.assertNotIn("'ZTCP_TRANSPORT'", said)
        self.assertIn("/dev/null chooses the transport", said)

    def test_an_nccl_that_takes_no_path_gets_a_library_path(self):
        for version in ("(2, 20, 5)", "(2, 27, 3)"):
            said = self.choose(f"nccl={version}", LD_LIBRARY_PATH="/opt/lib")
            self.assertIn("_ztcp/bin:/opt/lib'", said)
            self.assertNotIn("'NCCL_NET_PLUGIN':", said)
        self.assertIn("'NCCL_NET_PLUGIN':", self.choose("nccl=(2, 28, 9)"))

    def test_run_starts_a_command_with_the_variables(self):
        said = self.run_in("ztcp", "run", "--", "sh", "-c", "echo $NCCL_NET; exit 3", status=3)
        self.assertEqual(said, "ztcp\n")
        self.assertIn("no-such-command: No such file", self.run_in("ztcp", "run", "no-such-command", status=1))
        self.assertIn("name a command", self.run_in("ztcp", "run", status=1))

    def test_check_tells_whether_the_host_is_ready(self):
        said = json.loads(self.run_in("ztcp", "check", "--json", "--transport", "sockets"))
        self.assertTrue(said["ready"])
        self.assertIn("ncclNetPlugin_v3 to ncclNetPlugin_v12", said["lines"][0]["text"])
        said = self.run_in("ztcp", "check", status=1, ZTCP_CONFIG="/nowhere")
        self.assertIn("error config: ZTCP_CONFIG=/nowhere does not exist", said)
        self.assertIn("This host is not ready.", said)
        self.assertIn("unset NCCL_NET", self.run_in("ztcp", "check", status=1, NCCL_NET="Socket"))

    def test_bench_moves_verified_data_over_kernel_sockets(self):
        said = self.run_in("ztcp", "bench", "--transport", "sockets", "--op", "all_reduce", "--min", "8", "--max", "64K",
                           "--factor", "64", "--iters", "5", "--check", NCCL_SOCKET_IFNAME="=lo")
        self.assertIn("device 0 lo", said)
        self.assertIn("# Out of bounds values : 0 OK", said)
        self.assertIn("unrecognized arguments: --op", self.run_in("ztcp", "path", "--op", status=2))

    def test_the_tools_are_commands(self):
        for tool in ("ztcp_setup", "ztcp_perf", "ztcp_stat"):
            self.assertIn(tool, self.run_in(tool, "--version"))


def newest_glibc():
    said = subprocess.run(["objdump", "-T", BUILD / "plugin/libnccl-net.so"], check=True, capture_output=True,
                          text=True).stdout
    return max(tuple(map(int, version.split("."))) for version in re.findall(r"GLIBC_([\d.]+)", said))


if __name__ == "__main__":
    if newest_glibc() > (2, 34):
        print(f"this system's glibc is too new for a wheel: the plugin needs {newest_glibc()}, and wheels promise 2.34")
        sys.exit(77)
    unittest.main(argv=sys.argv[:1])
