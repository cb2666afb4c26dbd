#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright the ztcp authors
"""Compares the documents with the tools, the schema and the sources.

  docs_test.py PROGRAM...     paths of ztcp_setup, ztcp_perf, ztcp_stat, ztcp_switch, of engine_bench where built
"""
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import tomllib
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAMS = {pathlib.Path(t).name: t for t in sys.argv[1:]}
TOOLS = [name for name in PROGRAMS if name.startswith("ztcp_")]
RESULTS = ROOT / "bench/results"
DOCUMENTS = sorted(
    p for p in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("packaging/**/*.md"),
                *ROOT.glob("bench/**/*.md"), *ROOT.glob("tests/**/*.md"),
                *ROOT.glob("packaging/man/*.scd*"), *ROOT.glob("packaging/kubernetes/*"),
                *ROOT.glob("packaging/container/*")] if p.is_file())
# Programs of the repository with documented options, beside the built ones.
SCRIPTS = ["tools/quickstart", "tools/run-tests", "tools/run-release", "tools/run-hostlab",
           "tools/install-packages", "packaging/build-deb", "packaging/build-rpm", "packaging/build-tarball", "packaging/build-release",
           "packaging/container/run", "bench/gpu/run", "bench/gpu/train", "bench/gpu/verbs", "bench/gpu/curves",
           "bench/side_by_side", "tests/chaos/chaos.py"]
# Subcommands with options of their own.
SUBCOMMANDS = {"ztcp_perf": ["probe", "check-job"]}
# Programs that take words beside options: stages, scenarios, groups of packages.
CHOOSERS = ["tools/run-tests", "tools/run-release", "tools/run-hostlab", "tools/install-packages"]
# Variables of tools and scripts, which are no settings of the plugin.
OTHER_VARIABLES = {"ZTCP_PERF_SECRET", "ZTCP_PACKAGES", "ZTCP_CLEAN_ROOT"}


def spans(text):
    """Code in a document: lines of indented or fenced blocks, and `spans`, with shell lines joined.
    """
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
            if name in PROGRAMS and not word.endswith("/"):
                yield name, words[at + 1:]
                break
            if word.removeprefix("./") in SCRIPTS:
                yield word.removeprefix("./"), words[at + 1:]
                break


def output_of(program, *words):
    path = PROGRAMS.get(program) or ROOT / program
    return subprocess.run([path, *words], check=True, capture_output=True, text=True).stdout


def table(text, heading):
    """{first cell: other cells} of the tables under a heading."""
    section = text.split(heading, 1)[1].split("\n#")[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in section.splitlines()
            if line.startswith("|")]
    return {row[0]: row[1:] for row in rows}


def number(cell):
    return float(re.match(r"[\d.]+", cell).group())


def rounded(exact, told):
    """True if `told` is `exact` rounded to as many digits as `told` has."""
    told = re.match(r"[\d.]+", told).group()
    return f"{exact:.{len(told.partition('.')[2])}f}" == told


def literals():
    """Every string literal of the product, adjacent ones joined, format fields as …"""
    text = ""
    for folder in ("plugin", "core", "config", "transport", "hugepage", "tools"):
        for file in sorted([*(ROOT / folder).rglob("*.cc"), *(ROOT / folder).rglob("*.h")]):
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
            helps = [output_of(program, *words, "--help") for words in ([], *([s] for s in SUBCOMMANDS.get(program, [])))]
            # The lines of examples may be other programs'.
            helps = [text.split("\nExamples:")[0] for text in helps]
            self.helps[program] = set(re.findall(r"(?<![\w-])--?[A-Za-z][\w-]*", "\n".join(helps)))
        return self.helps[program]

    def test_the_table_of_cores_has_the_measured_cycles(self):
        record = json.loads((RESULTS / "engine-h100-host.json").read_text())
        text = (ROOT / "docs/sizing.md").read_text()
        rows = [r for r in record["results"]
                if r["working_set_bytes"] == 256 << 20 and r["super_segment_bytes"] == 0]
        self.assertEqual(len(rows), 4)
        for row in rows:
            receive, send = row["receive_cycles_per_byte"], row["send_cycles_per_byte"]
            payload = row["mtu"] - 52
            cells = [f"{receive:.2f} + {send:.2f}", f"{receive * payload:.0f} + {send * payload:.0f}"]
            cells += [f"{gbps * 1e9 / 8 * (receive + send) / record['cycles_per_second']:.1f}"
                      for gbps in (25, 50, 100, 200)]
            name = f"{row['mtu']}" + (", checksums in software" if row["checksum"] == "software" else "")
            self.assertIn(f"| {name} | {' | '.join(cells)} |", text)

    def test_every_option_exists(self):
        seen = 0
        for document in DOCUMENTS:
            for span in spans(document.read_text()):
                for program, words in commands(span):
                    for word in words:
                        option = re.match(r"--?[A-Za-z][\w-]*", word)
                        # Words that a script passes on to a container or job are not its own
                        # options.
                        if not option or word.startswith("-D"):
                            if program == "packaging/container/run" and not word.startswith("-"):
                                break
                            continue
                        seen += 1
                        self.assertIn(option.group(), self.known_options(program),
                                      f"{document.relative_to(ROOT)}: {program} has no {word}: {span}")
        self.assertGreater(seen, 60, "too few cases were found")

    def test_the_first_example_of_the_switch_runs(self):
        text = (ROOT / "packaging/man/ztcp_switch.1.scd").read_text()
        lines = text.split("# EXAMPLES", 1)[1].split("```")[1].strip().splitlines()
        with tempfile.TemporaryDirectory() as folder:
            words = [shlex.split(line.replace("/tmp/fabric", folder).rstrip(" &")) for line in lines[:2]]
            self.assertEqual([w[0] for w in words], ["ztcp_setup", "ztcp_switch"])
            subprocess.run([PROGRAMS["ztcp_setup"], *words[0][1:]], check=True, capture_output=True, timeout=60)
            readable, writable = os.pipe()
            with subprocess.Popen([PROGRAMS["ztcp_switch"], *words[1][1:], "--ready-fd", str(writable)],
                                  stdout=subprocess.DEVNULL, pass_fds=[writable]) as switch:
                os.close(writable)
                with os.fdopen(readable) as ready:
                    told = ready.read()
                switch.terminate()
            self.assertEqual(told.strip(), "ready")
            self.assertEqual(switch.returncode, 0)

    def test_every_stage_scenario_and_group_exists(self):
        known = {p: set(re.findall(r"[\w-]+", output_of(p, "--help"))) for p in CHOOSERS}
        known["tools/run-hostlab"] = {line.split()[0] for line in
                                      output_of("tools/run-hostlab", "--list").splitlines()}
        valued = {p: re.findall(r"(--[\w-]+)[ =][A-Z]+\b", output_of(p, "--help")) for p in CHOOSERS}
        seen = 0
        for document in DOCUMENTS:
            for span in spans(document.read_text()):
                for program, words in commands(span):
                    for before, word in zip([None, *words], words):
                        if program in CHOOSERS and word[0] != "-" and before not in valued[program]:
                            seen += 1
                            self.assertIn(word, known[program],
                                          f"{document.relative_to(ROOT)}: {program} has no {word}: {span}")
        self.assertGreater(seen, 3, "too few cases were found")

    def test_install_packages_brings_the_builders_requirements(self):
        groups = (ROOT / "tools/install-packages").read_text()
        for program in SCRIPTS:
            for names, group in re.findall(r"^Wants: ([\w, -]+) \(tools/install-packages (\w+)\)",
                                           output_of(program, "--help"), re.M):
                brought = re.search(rf"^{group}=\(([^)]*)\)", groups, re.M).group(1).split()
                self.assertLessEqual(set(names.split(", ")), set(brought), program)

    def test_man_pages_name_every_option_and_no_other(self):
        for name in TOOLS:
            page = next(ROOT.glob(f"packaging/man/{name}.*.scd")).read_text().replace("\\", "")
            page = page.split("# EXAMPLE")[0]  # Examples run other tools, too.
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
        self.assertGreater(seen, 10, "too few cases were found")

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

    def test_every_anchor_exists(self):
        for document in [d for d in DOCUMENTS if d.suffix == ".md"]:
            for path, anchor in re.findall(r"\]\((?!https?:)([^)#]*)#([^)]+)\)", document.read_text()):
                page = (document.parent / path) if path else document
                headings = re.findall(r"^#+ (.*)$", page.read_text(), re.M)
                self.assertIn(anchor, [re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
                                       for heading in headings], f"{document.relative_to(ROOT)}: {path}#{anchor}")

    def test_every_source_that_a_page_names_exists(self):
        """`comms/poller.h` is below one of these folders, `poller.h` anywhere."""
        folders = ["", "transport", "transport/ustack", "tools/ztcp_setup", "tests"]
        names = {path.name for folder in ("plugin", "core", "transport", "config", "hugepage", "tools", "bench", "tests")
                 for path in (ROOT / folder).rglob("*.*")}
        seen = 0
        for document in DOCUMENTS:
            for source in re.findall(r"`([\w./-]+\.(?:h|cc))`", document.read_text()):
                seen += 1
                self.assertTrue(any((ROOT / folder / source).exists() for folder in folders) if "/" in source
                                else source in names, f"{document.relative_to(ROOT)}: {source}")
        self.assertGreater(seen, 100, "too few cases were found")

    def test_measured_numbers_are_those_of_the_records(self):
        page = (ROOT / "docs/measured.md").read_text()
        told = table(page, "## Shared memory")
        self.compare(told, "2 ranks, ", "shared memory", (RESULTS / "nccl-h100.md").read_text(), (0, 3, 4))
        told = table(page, "## Four ranks")
        self.compare(told, "", "{} ranks", (RESULTS / "nccl-h200-networks.md").read_text(), (0, 1, 2, 3))

        trips = table((RESULTS / "README.md").read_text(), "## Two ranks on one machine")
        halves = re.search(r"half round trip .* is ([\d.]+) us, kernel TCP's ([\d.]+) us", page).groups()
        for side, half in zip(("ztcp over memif, MTU 9000", "kernel TCP, loopback"), halves):
            self.assertTrue(rounded(number(trips[side][2]), half), f"docs/measured.md: {half} us of {side}")

    def test_training_numbers_are_those_of_the_record(self):
        record = (RESULTS / "nccl-h100-training.md").read_text()
        told = table((ROOT / "README.md").read_text(), "## Measurements")
        networks = ["ztcp, kernel sockets", "ztcp, shared memory", "NCCL's sockets, stock", "NCCL's sockets, 4 x 4"]
        for model, heading in (("transformer, 235 M parameters, DDP", "### Transformer, DDP"),
                               ("the same, FSDP", "### Transformer, FSDP"), ("ResNet-50, DDP", "### ResNet-50, DDP")):
            recorded = table(record, heading)
            for network, cell in zip(networks, told[model], strict=True):
                self.assertTrue(rounded(float(recorded[network][0]), cell.replace(",", "")), f"{model}, {network}: {cell}")

    def compare(self, told, ranks_unsaid, of, record, columns):
        """Compares the rows told with those of `record` under headings that end in `of`, in these
        columns: the rows that state their number of ranks, or, with `ranks_unsaid` before them, those
        that do not."""
        seen = 0
        for name, cells in told.items():
            row = re.fullmatch(r"([24]) ranks, (send/recv|all-reduce|all-to-all) (\d+) (\w+)( \(bus\))?",
                               ranks_unsaid + name)
            if not row:
                continue
            ranks, op, unit = int(row.group(1)), row.group(2), row.group(4)
            size_bytes = int(row.group(3)) << {"B": 0, "KiB": 10, "MiB": 20, "GiB": 30}[unit]
            bus = {"send/recv": 1, "all-reduce": 2 * (ranks - 1) / ranks, "all-to-all": (ranks - 1) / ranks}[op]
            heading = f"### {op.replace('/', '').replace('-', '_')}, {of.format(ranks)}"
            recorded = table(record, heading)[f"{row.group(3)} {unit}"]
            for cell, exact in zip(filter(None, cells), [float(recorded[column]) for column in columns]):
                seen += 1
                if cell.endswith("GB/s"):
                    exact = size_bytes * bus / exact / 1e3
                self.assertTrue(rounded(exact, cell), f"{name}: {cell}, recorded: {exact}")
        self.assertGreater(seen, 10, "too few cases were found")

    def test_the_engines_numbers_are_those_of_its_record(self):
        runs = json.loads((RESULTS / "engine-h100-host.json").read_text())["results"]
        rows = re.findall(r"^\| (\d+)(, 64 KB super-segments)? \| (\w+) \| (\d+) MiB \| (\d+) Gb/s \| (\d+) Gb/s "
                          r"\| ([\d.]+) \|", (RESULTS / "README.md").read_text(), re.M)
        self.assertGreater(len(rows), 3, "too few cases were found")
        for mtu, joined, checksum, size, goodput, copy, ratio in rows:
            run, = [r for r in runs if (r["mtu"], r["super_segment_bytes"] > 0, r["checksum"], r["working_set_bytes"])
                    == (int(mtu), bool(joined), checksum, int(size) << 20)]
            for key, cell in (("goodput_gbps", goodput), ("memcpy_gbps", copy), ("ratio", ratio)):
                self.assertTrue(rounded(run[key], cell), f"{mtu}{joined} {checksum} {size} MiB: {cell}, not {run[key]}")
        told = re.search(r"at MTU 9000,\s+carries (\d+) to (\d+) Gb/s per core, ([\d.]+) to ([\d.]+) of one\s+memcpy",
                         (ROOT / "docs/measured.md").read_text()).groups()
        jumbo = [r for r in runs if r["mtu"] == 9000 and not r["super_segment_bytes"]]
        for cell, pick, key in zip(told, (min, max, min, max), ("goodput_gbps", "goodput_gbps", "ratio", "ratio")):
            self.assertTrue(rounded(pick(r[key] for r in jumbo), cell), f"docs/measured.md: {cell}, {key}")

    def test_conformance_names_real_tests(self):
        sources = "\n".join(p.read_text() for p in (ROOT / "tests").rglob("*.cc"))
        real = {f"{suite}.{name}" for suite, name in re.findall(r"\bTEST(?:_F|_P)?\(\s*(\w+),\s*(\w+)\)", sources)}
        suites = {name.split(".")[0] for name in real}
        told = re.findall(r"`(?:\w+/)?([A-Z]\w*\.(?:[A-Z]\w*|\*))(?:/[\w*]+)?`",
                          (ROOT / "transport/tcp/CONFORMANCE.md").read_text())
        self.assertGreater(len(told), 100, "too few cases were found")
        for name in told:
            self.assertTrue(name in real or name.endswith(".*") and name[:-2] in suites, f"there is no test {name}")

    def test_the_table_of_nics_is_that_of_the_sources(self):
        families = re.findall(r"NicFamily\{(.*?)\},", (ROOT / "core/nic_families.h").read_text(), re.S)
        self.assertGreater(len(families), 15, "too few cases were found")
        exact = []
        for family in families:
            row = {key: value.strip('"') for key, value in re.findall(r"\.(\w+)\s*=\s*(\"[^\"]*\"|[\w:]+)", family)}
            kernel = [row[key] for key in ("kernel_driver", "other_kernel_driver") if key in row]
            access = row.get("access", "NicAccess::kKernel").removeprefix("NicAccess::")
            over = {"kTaken": f"`{row.get('dpdk_driver')}`", "kBifurcated": f"`{row['dpdk_driver']}`, AF_XDP" if "dpdk_driver" in row else "AF_XDP", "kKernel": "AF_XDP", "kSockets": "no",
                    "kRdma": "no"}
            rdma = {"kRdma": "itself"}.get(access, f"`{row['rdma_module']}`" if "rdma_module" in row else "")
            exact.append([row["name"], ", ".join(f"`{name}`" for name in kernel), over[access], rdma, row["found_in"],
                          row.get("cloud_mtu_bytes", ""), "in emulation" if "ran_emulated" in row else "no"])
        section = (ROOT / "docs/choose.md").read_text().split("## NICs", 1)[1].split("\n## ")[0]
        lines = [line for line in section.splitlines() if line.startswith("|")][2:]
        self.assertEqual([[cell.strip() for cell in line.strip("|").split("|")] for line in lines], exact)

    def test_the_message_pages_quote_real_messages(self):
        strings = literals()
        seen = 0
        for page in sorted((ROOT / "docs/messages").glob("*.md")):
            for item in re.findall(r"^\* (`.*?):$", page.read_text(), re.M | re.S):
                for quoted in re.findall(r"`([^`]+)`", re.sub(r"\s+", " ", item)):
                    seen += 1
                    for part in [p.strip() for p in quoted.split("…") if len(p.strip()) > 3]:
                        self.assertTrue(any(part in s for s in strings), f"{page.name}: no source says: {part}")
        self.assertGreater(seen, 90, "too few cases were found")

    def test_the_message_pages_have_every_info_line(self):
        """Lines without words of their own are built elsewhere: their builders are quoted, too."""
        pages = " ".join(re.sub(r"\s+", " ", page.read_text()) for page in (ROOT / "docs/messages").glob("*.md"))
        quoted = re.findall(r"`([^`]+)`", pages)
        built, seen = set(), 0
        for folder in ("plugin", "core", "config", "transport", "hugepage"):
            for file in sorted((ROOT / folder).rglob("*.cc")):
                for call in re.findall(r'log::info\(\s*((?:"(?:[^"\\\n]|\\.)*"\s*)*)', file.read_text()):
                    line = re.sub(r"\{[^{}]*\}", "…", re.sub(r'"\s*"', "", call).strip().strip('"')).replace('\\"', '"')
                    parts = [part.strip(' :;,.()"') for part in line.split("…")]
                    words = [part for part in parts if len(part) > 3]
                    if not words:
                        built.add(file.name)
                    for word in words:
                        seen += 1
                        self.assertTrue(any(word in item for item in quoted), f"no page has: {word} ({file.name})")
        self.assertGreater(seen, 30, "too few cases were found")
        self.assertEqual(built, {"comm_end.cc", "death_watch.cc", "end_log.cc", "startup.cc", "verbs_transport.cc"})

    def test_every_key_is_used(self):
        """By a page, a tool, a test or a bench, beside the reader of the config."""
        used = ""
        for folder in ("docs", "packaging", "tools", "bench", "tests"):
            for file in (ROOT / folder).rglob("*"):
                if file.suffix in (".md", ".scd", ".in", ".cc", ".h", ".py", "") and file.is_file() and "corpus" not in file.parts:
                    used += file.read_text(errors="replace")
        for key in set().union(*self.keys.values()):
            self.assertRegex(used, rf"\b{key}\b", f"{key}: drop the key, or describe its use on a page")

    def test_versions_are_those_of_the_sources(self):
        """Each row of the page's first table: its number, in the file that the row names."""
        rows = re.findall(r"^\| [\w -]+ \| (\d+) \| `([\w./-]+)` \|", (ROOT / "docs/versions.md").read_text(), re.M)
        self.assertEqual(len(rows), 7)
        constant = r"(?:kHandleVersion|kVersion|kRule) = (\d+);|[Ww]ire format version (\d+)|u32 version \((\d+)\)"
        for told, file in rows:
            exact = ["".join(groups) for groups in re.findall(constant, (ROOT / file).read_text())]
            self.assertIn(told, exact[:1], f"{file} says {exact}")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
