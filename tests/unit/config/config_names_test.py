#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Settings named in messages ("set mtu_bytes = {}") must be keys of the config: operators copy them.

usage: config_names_test.py SCHEMA ROOT
"""
import pathlib
import re
import sys
import tomllib

SCHEMA = tomllib.loads(pathlib.Path(sys.argv[1]).read_text())
ROOT = pathlib.Path(sys.argv[2])
FOLDERS = ["config", "core", "hugepage", "plugin", "tools/ztcp_setup", "transport"]
KEYS = {key["name"] for key in SCHEMA["key"]} | {
    f"{key['section']}.{key['name']}" for key in SCHEMA["key"] if key.get("section")}
STRING = r'"(?:[^"\\\n]|\\.)*"'
# Comments and quotes as characters hide texts that look like strings.
TOKEN = re.compile(rf"//[^\n]*|'(?:[^'\\]|\\.)'|((?:{STRING}\s*)+)")
# "name = value", where the value is often a placeholder.
SETTING = re.compile(r'(?<![\w.{}])([a-z]\w*(?:\.\w+)?) = (?:\{|\\?"|\w)')


def messages(text):
    """String literals, joined as the compiler joins them."""
    for token in TOKEN.finditer(text):
        yield "".join(part[1:-1] for part in re.findall(STRING, token.group(1) or ""))


found = [(path.relative_to(ROOT), name)
         for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.cc"))
         for message in messages(path.read_text()) for name in SETTING.findall(message)]
wrong = [f"{path}: \"{name} = ...\" is no key of the config" for path, name in found if name not in KEYS]
print(*wrong, f"{len(found)} settings named in messages, {len(wrong)} of them unknown", sep="\n")
sys.exit(1 if wrong or len(found) < 10 else 0)
