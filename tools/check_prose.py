#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the language of the tree: comments, messages, pages, names of tests, commit subjects.

  comments   at most 100 columns; by folder, at most 2 free relatives (RELATIVE below) in 1,000 words,
             and 2 of 1,000 sentences with an unclear opening (OPENING)
  messages   string literals of the product, counted as comments are
  pages      Markdown: 100 columns (rows of tables: 200), 90 words a paragraph or list item, free
             relatives as in comments
  tests      a name does not begin with a word of UNCLEAR_NAME: a failure shows the name alone
  subjects   of commits since this check: at most 72 characters, `area: imperative`

usage: check_prose.py [--counts] [PATH...]     exit 1 and a line per offence when a rule is broken

--counts prints the table of all folders and pages instead. PATH: only files below it.
"""
import argparse
import collections
import pathlib
import re
import subprocess
import sys

COLUMNS, ROW_COLUMNS, PARAGRAPH_WORDS, SUBJECT_CHARACTERS = 100, 200, 90, 72
RELATIVES_PER_1000, OPENINGS_PER_1000 = 2, 2
FEW_WORDS = 500  # A folder with fewer words may have one of either.

RELATIVE = re.compile(r"\b(who|whoever|whom|whose|what|whatever)\b", re.IGNORECASE)
OPENING = re.compile(r"(?:^|[.!?:] )(Who|Whoever|What|Whatever|Whose|Of|Nor)\b")
SENTENCE = re.compile(r"[.!?](?: |$)")
WORD = re.compile(r"[A-Za-z][A-Za-z'’-]*")
STRING = re.compile(r'"((?:[^"\\]|\\.)*)"')
TEST = re.compile(r"^\s*(?:TYPED_)?TEST(?:_F|_P)?\(\s*\w+,\s*(\w+)", re.MULTILINE)
UNCLEAR_NAME = re.compile(r"(Who|Whoever|Whose|What|Whatever|Nor|So|Its|But|Nobody)(?=[A-Z_])")
CODE = {".h": "//", ".cc": "//", ".c": "//", ".py": "#", ".sh": "#", ".build": "#", "": "#"}
PRODUCT = ("core/", "transport/", "plugin/", "config/", "hugepage/", "tools/")
SUBJECT = re.compile(r"[a-z][\w/., -]*: ([a-z][\w-]*) ")
# First words of a subject that are not a verb in the imperative.
NO_IMPERATIVE = re.compile(
    r"(a|an|the|one|who|what|where|when|no|nobody|each|every|all|it|its|this|that|these|more|"
    r"of|in|on|for|with|without|as|if|\w+ed|\w+ing|\w+[^su]s)$")
IMPERATIVE = re.compile(r"(embed|need|feed|shed|speed|proceed|exceed|bring|string|ring|ping|sing)$")


def tracked(root, paths):
    listed = subprocess.run(["git", "-C", root, "ls-files", "--", *paths], text=True,
                            capture_output=True, check=True).stdout
    return [path for path in listed.splitlines() if (root / path).is_file()]


def group_of(path):
    """The folder of a count: two levels, in unit tests and ztcp_setup three."""
    parts = path.split("/")[:-1]
    deep = 3 if parts[:2] in (["tests", "unit"], ["tools", "ztcp_setup"]) else 2
    return "/".join(parts[:deep]) or "."


def comments(text, mark):
    """(line number, text) of each comment line; a comment behind code counts, too."""
    for number, line in enumerate(text.splitlines(), 1):
        if mark == "//":
            found = re.search(r"(?<!:)//+ ?(.*)", STRING.sub('""', line))
            if not found:
                found = re.match(r"\s*(?:/\*|\*)(?!/) ?(.*)", line)
        else:
            found = re.search(r"(?:^|\s)# ?(.*)", STRING.sub('""', line))
        if found and "SPDX" not in line and "Copyright" not in line:
            yield number, found.group(1)


def docstrings(text):
    return re.findall(r'"""(.*?)"""', text, re.DOTALL)


def messages(text):
    for line in text.splitlines():
        if not line.lstrip().startswith(("//", "#")):
            yield from (found for found in STRING.findall(line) if " " in found)


class Counts:
    def __init__(self):
        self.words = self.relatives = self.sentences = self.openings = 0

    def add(self, text):
        self.words += len(WORD.findall(text))
        self.relatives += len(RELATIVE.findall(text))
        self.sentences += len(SENTENCE.findall(text))
        self.openings += len(OPENING.findall(text))

    def problems(self):
        few = self.words < FEW_WORDS
        if self.relatives > max(RELATIVES_PER_1000 * self.words / 1000, few):
            yield (f"{self.relatives} free relatives in {self.words} words: at most "
                   f"{RELATIVES_PER_1000} in 1,000 (who, whoever, whose, what, whatever)")
        if self.openings > max(OPENINGS_PER_1000 * self.sentences / 1000, 1):
            yield (f"{self.openings} of {self.sentences} sentences begin with Who, What, Of or Nor: "
                   f"at most {OPENINGS_PER_1000} of 1,000")


def paragraphs(text):
    """(line number, words) of each paragraph and list item outside code and tables."""
    start, words, is_code = 0, [], False
    for number, line in enumerate([*text.splitlines(), ""], 1):
        if line.lstrip().startswith("```"):
            is_code = not is_code
        is_item = re.match(r"\s*([-*+]|\d+\.) ", line)
        ends = is_code or not line.strip() or line.lstrip().startswith(("|", "#", "```", ">"))
        if (ends or is_item) and words:
            yield start, words
            words = []
        if not ends:
            start = start if words else number
            words += line.split()


def page_offences(path, text, counts):
    is_code = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("```"):
            is_code = not is_code
        limit = ROW_COLUMNS if line.lstrip().startswith("|") or is_code else COLUMNS
        if len(line) > limit and not re.match(r"\s*(\[.*\]: |!\[|<)", line):
            yield f"{path}:{number}", f"{len(line)} columns: at most {limit}"
        if not is_code and re.match(r"#+ (Who|What|Whose|Of|Nor)\b", line):
            yield f"{path}:{number}", "a heading begins without a subject"
    for number, words in paragraphs(text):
        counts[path].add(" ".join(words))
        if len(words) > PARAGRAPH_WORDS:
            yield f"{path}:{number}", f"a paragraph of {len(words)} words: at most {PARAGRAPH_WORDS}"


def code_offences(path, text, mark, counts, message_counts):
    group = group_of(path)
    lines = list(comments(text, mark))
    whole = text.splitlines()
    counts[group].add("\n".join(line for _, line in lines).replace("\n", " "))
    if path.endswith(".py"):
        for docstring in docstrings(text):
            counts[group].add(" ".join(docstring.split()))
    if path.startswith(PRODUCT) and mark == "//":
        for message in messages(text):
            message_counts[group].add(message)
    for number, _ in lines:
        if len(whole[number - 1]) > COLUMNS:
            yield f"{path}:{number}", f"{len(whole[number - 1])} columns: at most {COLUMNS}"
    if path.startswith("tests/"):
        for name in TEST.findall(text):
            if UNCLEAR_NAME.match(name):
                yield path, f"the test {name} cannot be understood alone"


def subject_offences(root):
    """Checks the commits since this file was added; none without a history."""
    def git(*arguments):
        return subprocess.run(["git", "-C", root, *arguments], text=True, capture_output=True,
                              check=False).stdout
    first = git("log", "--diff-filter=A", "--format=%H", "--", "tools/check_prose.py").split()
    if not first:
        return
    for line in git("log", "--no-merges", "--format=%h %s", f"{first[-1]}..HEAD").splitlines():
        commit, subject = line.split(" ", 1)
        if len(subject) > SUBJECT_CHARACTERS:
            yield commit, f"{len(subject)} characters: at most {SUBJECT_CHARACTERS}: {subject}"
        verb = SUBJECT.match(subject)
        if not verb or (NO_IMPERATIVE.match(verb.group(1)) and not IMPERATIVE.match(verb.group(1))):
            yield commit, f"is not `area: imperative`: {subject}"


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--counts", action="store_true", help="print the table of counts")
    parser.add_argument("paths", nargs="*", metavar="PATH")
    arguments = parser.parse_args()
    root = pathlib.Path(__file__).resolve().parent.parent
    counts = collections.defaultdict(Counts)
    message_counts = collections.defaultdict(Counts)
    found = []
    for path in tracked(root, arguments.paths or ["."]):
        if path.startswith("tests/data/") or not is_text(root / path):
            continue
        text = (root / path).read_text()
        if path.endswith(".md"):
            found += page_offences(path, text, counts)
        elif (mark := mark_of(path, text)) is not None:
            found += code_offences(path, text, mark, counts, message_counts)
    for kind, table in (("comments", counts), ("messages", message_counts)):
        for group, of_group in sorted(table.items()):
            found += [(group, f"{kind}: {problem}") for problem in of_group.problems()]
    if arguments.counts:
        print_counts(counts, message_counts)
        return 0
    if not arguments.paths:
        found += subject_offences(root)
    for place, problem in found:
        print(f"{place}: {problem}")
    return 1 if found else 0


def is_text(path):
    try:
        path.read_text()
        return True
    except UnicodeDecodeError:
        return False


def mark_of(path, text):
    suffix = pathlib.PurePath(path).suffix
    if suffix == "" and not text.startswith("#!"):
        return None
    return CODE.get(suffix)


def print_counts(counts, message_counts):
    print(f"{'':48}  words  relatives/1,000  openings/1,000")
    for kind, table in (("", counts), ("messages of ", message_counts)):
        for group, of_group in sorted(table.items()):
            relatives = 1000 * of_group.relatives / max(1, of_group.words)
            openings = 1000 * of_group.openings / max(1, of_group.sentences)
            print(f"{kind + group:48} {of_group.words:6} {relatives:12.1f} {openings:15.1f}")


if __name__ == "__main__":
    sys.exit(main())
