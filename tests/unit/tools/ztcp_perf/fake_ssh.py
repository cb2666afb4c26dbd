#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright the ztcp authors
"""Stands for ssh in tests of ztcp_perf probe: runs the command on this host, or fails as a host may.

Usage: fake_ssh.py HOST COMMAND. FAKE_HOST=FAULT in the environment, with the host's name in capital
letters, chooses the fault:

  refused       the host refuses the connection
  silent        the host accepts it, and nothing follows
  greets        a login script prints lines first
  hangs         the agent's lines end before the first measurement
  dies          the agent is killed before the first measurement
  old           another version of ztcp_perf, which measures all the same
  foreign       another version of ztcp_perf, with another protocol
  no-plugin     the plugin is missing
"""
import os
import subprocess
import sys
import time

host, command = sys.argv[1:3]
fault = os.environ.get("FAKE_" + host.upper(), "")
if fault == "refused":
    sys.exit("ssh: connect to host %s port 22: Connection refused" % host)
if fault == "silent":
    time.sleep(600)
if fault == "greets":
    print("Welcome!\n\n{not json", flush=True)
if fault == "no-plugin":
    command = command.replace("--plugin ", "--plugin /nowhere")
if fault in ("", "greets", "no-plugin"):
    os.execvp("sh", ["sh", "-c", command])

agent = subprocess.Popen(["sh", "-c", "exec " + command], stdout=subprocess.PIPE)
for line in agent.stdout:
    if b'"handle"' in line and fault == "hangs":
        time.sleep(600)
    if b'"handle"' in line and fault == "dies":
        agent.kill()
        agent.wait()
        sys.exit(255)
    if b'"facts"' in line and fault == "old":
        line = line.replace(b'"version":"', b'"version":"0.0.1-')
    if b'"ztcp_probe"' in line and fault == "foreign":
        line = line.replace(b'"ztcp_probe":', b'"ztcp_probe":9')
    sys.stdout.buffer.write(line)
    sys.stdout.buffer.flush()
