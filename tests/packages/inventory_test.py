#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright the ztcp authors
"""Compares the SBOM and the notices with the binaries they describe.

  inventory_test.py BUILD
"""
import hashlib
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "build").resolve()
PACKAGES = {
    "libnccl-net-ztcp": ["plugin/libnccl-net.so", "plugin/env/libnccl-env-ztcp.so"],
    "ztcp-tools": [f"tools/{t}/{t}" for t in ("ztcp_setup", "ztcp_perf", "ztcp_stat", "ztcp_switch")],
}
RELATIONS = {"DESCRIBES", "CONTAINS", "STATIC_LINK", "DYNAMIC_LINK", "DEPENDS_ON"}


# A build may have DPDK from packaging/make-dpdk.
SYSROOTS = ["--sysroot", ROOT / "build-dpdk"] if (ROOT / "build-dpdk").is_dir() else []


def inventory(name, out, *more):
    return subprocess.run(
        [ROOT / "packaging/inventory.py", "--build", BUILD, "--name", name, "--version", "1.2.3",
         "--epoch", "1700000000", "--root", BUILD, "--out", out, *SYSROOTS, *more,
         *(f"{BUILD / b}={b}" for b in PACKAGES[name])], capture_output=True, text=True, check=False)


class Inventory(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.out = pathlib.Path(cls.folder.name)
        cls.document, cls.notices = {}, {}
        for name in PACKAGES:
            done = inventory(name, cls.out / name)
            assert done.returncode == 0, done.stderr
            cls.document[name] = json.loads((cls.out / name / "sbom.spdx.json").read_text())
            cls.notices[name] = (cls.out / name / "THIRD-PARTY-NOTICES").read_text()

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_has_the_fields_that_spdx_2_3_requires(self):
        for document in self.document.values():
            self.assertEqual(document["spdxVersion"], "SPDX-2.3")
            self.assertEqual(document["dataLicense"], "CC0-1.0")
            self.assertEqual(document["SPDXID"], "SPDXRef-DOCUMENT")
            self.assertRegex(document["documentNamespace"], r"^https://[^#\s]+$")
            self.assertEqual(document["creationInfo"]["created"], "2023-11-14T22:13:20Z")
            for creator in document["creationInfo"]["creators"]:
                self.assertRegex(creator, r"^(Tool|Person|Organization): ")
            ids = ["SPDXRef-DOCUMENT"]
            for package in document["packages"]:
                ids.append(package["SPDXID"])
                for field in ("name", "downloadLocation", "licenseConcluded", "licenseDeclared",
                              "copyrightText"):
                    self.assertTrue(package[field], package)
                self.assertIs(package["filesAnalyzed"], False)
            for file in document["files"]:
                ids.append(file["SPDXID"])
                self.assertTrue(file["fileName"].startswith("./"))
            self.assertEqual(len(ids), len(set(ids)), "an SPDXID stands for two things")
            for identifier in ids:
                self.assertRegex(identifier, r"^SPDXRef-[A-Za-z0-9.-]+$")
            for relation in document["relationships"]:
                self.assertIn(relation["spdxElementId"], ids)
                self.assertIn(relation["relatedSpdxElement"], ids)
                self.assertIn(relation["relationshipType"], RELATIONS)

    def test_names_every_library_the_loader_looks_for(self):
        for name, binaries in PACKAGES.items():
            wanted = set()
            for binary in binaries:
                text = subprocess.run(["readelf", "-dW", BUILD / binary], check=True,
                                      capture_output=True, text=True).stdout
                wanted |= set(re.findall(r"\(NEEDED\).*\[(.*)\]", text))
            linked = {r["relatedSpdxElement"] for r in self.document[name]["relationships"]
                      if r["relationshipType"] == "DYNAMIC_LINK"}
            self.assertEqual({i.removeprefix("SPDXRef-Library-") for i in linked},
                             {re.sub(r"[^A-Za-z0-9.-]", "-", w) for w in wanted})

    def test_lists_the_code_inside_each_package(self):
        inside = {name: {p["name"] for p in document["packages"]}
                  for name, document in self.document.items()}
        both = {"DPDK", "fmt", "toml++", "tl::expected", "GCC run-time library"}
        self.assertLessEqual(both, inside["libnccl-net-ztcp"])
        self.assertLessEqual(both | {"CLI11", "JSON for Modern C++", "hwloc"}, inside["ztcp-tools"])
        # The plugin has no command line and no hwloc.
        self.assertTrue({"CLI11", "JSON for Modern C++", "hwloc"}.isdisjoint(inside["libnccl-net-ztcp"]))

    def test_has_the_dpdk_version_that_is_inside(self):
        found = subprocess.run(["meson", "introspect", "--dependencies", BUILD], check=True, capture_output=True,
                               text=True).stdout
        version = next(d["version"] for d in json.loads(found) if d["name"] == "libdpdk")
        for name in PACKAGES:
            inside = [p["versionInfo"] for p in self.document[name]["packages"] if p["name"] == "DPDK"]
            self.assertEqual(len(inside), 1, inside)
            self.assertTrue(inside[0].startswith(f"{version}-"), (inside, version))

    def test_checksums_are_those_of_the_files(self):
        for name, binaries in PACKAGES.items():
            sums = {f["fileName"]: f["checksums"] for f in self.document[name]["files"]}
            for binary in binaries:
                for entry in sums[f"./{binary}"]:
                    digest = hashlib.new(entry["algorithm"].lower(), (BUILD / binary).read_bytes())
                    self.assertEqual(entry["checksumValue"], digest.hexdigest())

    def test_notices_hold_every_component_with_its_text(self):
        for name, document in self.document.items():
            for package in document["packages"]:
                if package["SPDXID"].startswith("SPDXRef-Component-"):
                    heading = f"{package['name']} {package['versionInfo']} ({package['licenseConcluded']})"
                    self.assertIn(heading, self.notices[name])
        self.assertIn("Redistribution and use in source and binary forms", self.notices["libnccl-net-ztcp"])

    def test_the_same_input_gives_the_same_bytes(self):
        again = self.out / "again"
        self.assertEqual(inventory("libnccl-net-ztcp", again).returncode, 0)
        for file in again.iterdir():
            self.assertEqual(file.read_bytes(), (self.out / "libnccl-net-ztcp" / file.name).read_bytes())

    def test_refuses_code_that_is_not_listed(self):
        listed = (ROOT / "packaging/components.toml").read_text()
        for gone, named in ((r'source = "dpdk"', "of dpdk is inside"),
                            (r'"strlcpy.o", ', "libbsd.a(strlcpy.o)")):
            if gone not in listed:
                self.fail(f"components.toml lacks {gone}")
            if "strlcpy" in gone and "libbsd" not in self.notices["libnccl-net-ztcp"]:
                continue  # A distribution with a DPDK without libbsd.
            shortened = self.out / "components.toml"
            shortened.write_text(listed.replace(gone, 'source = "nothing"' if "=" in gone else ""))
            done = inventory("libnccl-net-ztcp", self.out / "refused", "--components", shortened)
            self.assertEqual(done.returncode, 1)
            self.assertIn(named, done.stderr)
            self.assertFalse((self.out / "refused").exists())


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
