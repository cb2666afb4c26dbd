#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright the ztcp authors
"""Holds what documents say against the tools, the schema and the sources.

  docs_test.py TOOL...     paths of ztcp_setup, ztcp_perf, ztcp_switch
"""
import pathlib
import re
import shlex
import subprocess
import sys
import tomllib
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOOLS = {pathlib.Path(t).name: t for t in sys.argv[1:]}
DOCUMENTS = sorted(
    p for p in [*ROOT.glob("*.md"), *ROOT.glob("packaging/**/*.md"), *ROOT.glob("bench/**/*.md"),
                *ROOT.glob("packaging/man/*.scd*"), *ROOT.glob("packaging/kubernetes/*"),
                *ROOT.glob("packaging/container/*")] if p.is_file())
# Programs of the repository whose options are documented, beside the three tools.
SCRIPTS = ["tools/quickstart", "tools/run-tests", "tools/run-release", "packaging/build-deb",
           "packaging/build-rpm", "packaging/build-tarball", "packaging/container/run", "bench/gpu/run"]
# Variables that are no settings of the plugin: of tools and scripts.
OTHER_VARIABLES = {"ZTCP_PERF_COOKIE", "ZTCP_PACKAGES", "ZTCP_CLEAN_ROOT"}


def spans(text):
    """Code in a document: lines of indented or fenced blocks, and `spans`, with shell lines joined."""
    text = re.sub(r"\\\n\s*", " ", text)
    fenced = False
    for line in text.splitlines():
        if line.startswith("```"):
            fenced = not fenced
        elif fenced or line.startswith("    ") or line.startswith("# "):
            yield line.strip("# ")
        else:
            yield from re.findall(r"`([^`]+)`", line)


def commands(line):
    """[program, words after it] of each of our programs that a line of code runs."""
    line = re.split(r"\s#\s|\s{2,}", line.strip(), maxsplit=1)[0]
    for piece in re.split(r"[;|&<>()]+", line):
        try:
            words = shlex.split(piece)
        except ValueError:
            words = piece.split()
        for at, word in enumerate(words):
            name = pathlib.Path(word).name
            if name in TOOLS and not word.endswith("/"):
                yield name, words[at + 1:]
                break
            if word.removeprefix("./") in SCRIPTS:
                yield word.removeprefix("./"), words[at + 1:]
                break


def help_of(program):
    path = TOOLS.get(program) or ROOT / program
    return subprocess.run([path, "--help"], check=True, capture_output=True, text=True).stdout


def literals():
    """Every string literal of the product, adjacent ones joined, format fields as …"""
    text = ""
    for folder in ("plugin", "config", "transport", "hugepage", "tools"):
        for file in sorted((ROOT / folder).rglob("*.cc")):
            text += file.read_text() + "\n"
    text = re.sub(r'"\s*\n\s*"', "", text)
    return [re.sub(r"\{[^{}]*\}", "…", s).replace('\\"', '"') for s in re.findall(r'"((?:[^"\\\n]|\\.)*)"', text)]


class Documents(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.schema = tomllib.loads((ROOT / "config/schema.toml").read_text())
        cls.keys = {}
        for key in cls.schema["key"]:
            cls.keys.setdefault(key["section"], set()).add(key["name"])
        cls.helps = {}

    def known_options(self, program):
        if program not in self.helps:
            self.helps[program] = set(re.findall(r"(?<![\w-])--?[A-Za-z][\w-]*", help_of(program)))
        return self.helps[program]

    def test_every_option_exists(self):
        seen = 0
        for document in DOCUMENTS:
            for span in spans(document.read_text()):
                for program, words in commands(span):
                    for word in words:
                        option = re.match(r"--?[A-Za-z][\w-]*", word)
                        # What a script hands on to a container or job is not its own.
                        if not option or word.startswith("-D"):
                            if program == "packaging/container/run" and not word.startswith("-"):
                                break
                            continue
                        seen += 1
                        self.assertIn(option.group(), self.known_options(program),
                                      f"{document.relative_to(ROOT)}: {program} has no {word}: {span}")
        self.assertGreater(seen, 60, "hardly anything was looked at")

    def test_man_pages_name_every_option_and_no_other(self):
        for name in TOOLS:
            page = next(ROOT.glob(f"packaging/man/{name}.*.scd")).read_text().replace("\\", "")
            page = page.split("# EXAMPLE")[0]  # They run other tools, too.
            told = set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", page))
            known = {o for o in self.known_options(name) if o.startswith("--")}
            self.assertEqual(known - told - {"--help", "--version"}, set(), f"{name}: not in its man page")
            self.assertEqual(told - known, set(), f"{name}: only in its man page")

    def test_every_config_key_exists(self):
        seen = 0
        for document in DOCUMENTS:
            for span in spans(document.read_text()):
                for section, key in re.findall(r"(?<![\w./-])([a-z]+)\.([a-z_]+)\b(?!\.)", span):
                    if section in self.keys and key not in ("cc", "h"):
                        seen += 1
                        self.assertIn(key, self.keys[section], f"{document.relative_to(ROOT)}: {span}")
        self.assertGreater(seen, 10, "hardly anything was looked at")

    def test_toml_in_documents_has_known_keys(self):
        every = set().union(*self.keys.values())
        for document in DOCUMENTS:
            for block in re.findall(r"(?:^    .*\n|^\n)+|^```\n(?:.*\n)*?```$", document.read_text(), re.M):
                if "[[nic]]" not in block:
                    continue
                for key in re.findall(r"^\s*([a-z_]+) = ", block, re.M):
                    self.assertIn(key, every, document.relative_to(ROOT))

    def test_every_variable_exists(self):
        known = {e["name"] for e in self.schema["environment"]} | OTHER_VARIABLES
        for document in DOCUMENTS:
            for name in re.findall(r"\bZTCP_[A-Z_]+\b", document.read_text()):
                self.assertIn(name, known, document.relative_to(ROOT))

    def test_every_file_of_the_repository_exists(self):
        for document in DOCUMENTS:
            if document.suffix != ".md":
                continue
            text = document.read_text()
            for path in re.findall(r"\]\((?!https?:)([^)#]+)\)", text):
                self.assertTrue((document.parent / path).exists(), f"{document.relative_to(ROOT)}: {path}")
            for path in re.findall(r"`((?:packaging|tools|bench|tests)/[\w./-]+)`", text):
                self.assertTrue((ROOT / path).exists(), f"{document.relative_to(ROOT)}: {path}")

    def test_the_fault_table_quotes_real_messages(self):
        strings = literals()
        table = (ROOT / "packaging/OPERATING.md").read_text().split("## Faults")[1].split("\n## ")[0]
        rows = re.findall(r"^\| `([^`]+)` \|", table, re.M)
        self.assertGreater(len(rows), 20)
        for quoted in rows:
            for part in [p.strip() for p in quoted.split("…") if len(p.strip()) > 3]:
                self.assertTrue(any(part in s for s in strings), f"no source says: {part}")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
