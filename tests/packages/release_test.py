#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright the ztcp authors
"""The parts of a release that need no packages: notes, SBOM, sums, and missing tools."""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "packaging"))
sys.dont_write_bytecode = True
import release_parts as parts  # pylint: disable=wrong-import-position

CHANGELOG = """# Changelog

The newest version stands first.

## Unreleased: 1.2.0

### Transports

* A new one ([docs/new.md](docs/new.md)), [measured](docs/measured.md#numbers).

## 1.1.0, 2027-01-02

* An old one.
"""


def document(name):
    """As packaging/inventory.py writes it."""
    root = f"SPDXRef-Package-{name}"
    return {"creationInfo": {"created": "2023-11-14T22:13:20Z", "creators": ["Tool: ztcp-inventory"]},
            "documentDescribes": [root],
            "packages": [{"SPDXID": root, "name": name}, {"SPDXID": "SPDXRef-Component-fmt", "name": "fmt"}],
            "files": [{"SPDXID": f"SPDXRef-File-{name}.so", "fileName": f"./{name}.so"}],
            "relationships": [
                {"spdxElementId": "SPDXRef-DOCUMENT", "relationshipType": "DESCRIBES", "relatedSpdxElement": root},
                {"spdxElementId": root, "relationshipType": "CONTAINS",
                 "relatedSpdxElement": f"SPDXRef-File-{name}.so"}]}


class Release(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.files = []
        for name in ("ztcp-1.2.0-py3-none-any.whl", "ztcp-tools_1.2.0-1_amd64.deb", "ztcp-tools-dbgsym_1.2.0-1_amd64.deb"):
            self.files.append(self.folder / name)
            self.files[-1].write_text(name)

    def run_it(self, *words, **environment):
        return subprocess.run([sys.executable, ROOT / "packaging/build-release", *words], env={**os.environ, **environment},
                              capture_output=True, text=True, timeout=60, check=False)

    def test_the_notes_are_the_versions_section_without_links_of_the_repository(self):
        text = parts.notes(CHANGELOG, "1.2.0", self.files)
        self.assertTrue(text.startswith("# ztcp 1.2.0 (unreleased)\n\n### Transports\n"), text)
        self.assertIn("A new one (docs/new.md), measured (docs/measured.md#numbers).", text)
        self.assertNotIn("An old one", text)
        self.assertNotRegex(text, r"\]\(")
        self.assertIn("| `ztcp-tools-dbgsym_1.2.0-1_amd64.deb` | debug symbols for Debian |", text)
        self.assertIn("| `ztcp-tools_1.2.0-1_amd64.deb` | Debian package |", text)

    def test_a_dated_section_is_released(self):
        self.assertTrue(parts.notes(CHANGELOG, "1.1.0", []).startswith("# ztcp 1.1.0\n"))

    def test_a_version_without_a_section_is_refused_by_name(self):
        for version in ("1.2.1", "1.2", "1.1.00"):
            with self.assertRaisesRegex(parts.Refused, "no section for " + re.escape(version) + ".*Unreleased: 1.2.0"):
                parts.notes(CHANGELOG, version, [])

    def test_this_trees_changelog_has_its_version(self):
        version = re.search(r"^  version: '(.*)',$", (ROOT / "meson.build").read_text(), re.M).group(1)
        text = parts.notes((ROOT / "CHANGELOG.md").read_text(), version, [])
        self.assertGreater(len(text.splitlines()), 20)

    def test_the_sbom_contains_both_packages_and_every_file(self):
        merged = parts.merged_sbom([document("libnccl-net-ztcp"), document("ztcp-tools")], "1.2.0", self.files)
        ids = ["SPDXRef-DOCUMENT", *(one["SPDXID"] for one in [*merged["packages"], *merged["files"]])]
        self.assertEqual(len(ids), len(set(ids)), "an SPDXID stands for two things")
        for relation in merged["relationships"]:
            self.assertIn(relation["spdxElementId"], ids)
            self.assertIn(relation["relatedSpdxElement"], ids)
        released = {one["fileName"]: one["checksums"][1]["checksumValue"] for one in merged["files"]
                    if "checksums" in one}
        for line in parts.sums(self.files).splitlines():
            digest, name = line.split("  ")
            self.assertEqual(released[f"./{name}"], digest)
        self.assertEqual(merged["creationInfo"]["created"], "2023-11-14T22:13:20Z")

    def test_equal_files_give_an_equal_sbom(self):
        made = [parts.merged_sbom([document("ztcp-tools")], "1.2.0", files) for files in
                (self.files, list(reversed(self.files)))]
        self.assertEqual(json.dumps(made[0]), json.dumps(made[1]))

    def test_sha256sum_accepts_the_sums(self):
        (self.folder / parts.SUMS).write_text(parts.sums(self.files))
        done = subprocess.run(["sha256sum", "--strict", "-c", parts.SUMS], cwd=self.folder, capture_output=True,
                              text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(done.stdout.count(": OK"), 3)

    def test_missing_tools_are_named_with_their_packages(self):
        done = self.run_it("--out", str(self.folder / "out"), PATH=str(self.folder))
        self.assertEqual(done.returncode, 1)
        self.assertIn("missing: ", done.stderr)
        self.assertRegex(done.stderr, r"rpmbuild.*; apt-get install .*debhelper dpkg-dev.* rpm")
        self.assertNotIn("Traceback", done.stderr)

    def test_a_folder_with_other_files_is_refused(self):
        # Stand-ins, so that the tools of packaging are not needed.
        tools = self.folder / "tools"
        tools.mkdir()
        for name in ("meson", "ninja", "g++", "scdoc", "strip", "objcopy", "readelf", "dpkg-buildpackage", "dh",
                     "rpmbuild", "gzip", "tar"):
            (tools / name).write_text("#!/bin/sh\nexit 99\n")
            (tools / name).chmod(0o755)
        done = self.run_it("--out", str(self.folder), PATH=f"{tools}:{os.environ['PATH']}")
        self.assertEqual(done.returncode, 1)
        self.assertIn("is not empty", done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
