#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# For the package tests, which source it: a clean root of a Debian suite, in namespaces that take
# all mounts and processes with them, and a job that is run from installed files.

say() { printf '[%4d s] %s\n' "$SECONDS" "$*"; }
fail() { echo "FAILED: $*" >&2; exit 1; }
# A command that fails without a word of its own is named, also in functions and where its output is
# thrown away.
set -E
exec {stderr}>&2
trap 'echo "FAILED: ${BASH_SOURCE[0]##*/} line $LINENO, called from lines ${BASH_LINENO[*]}: $BASH_COMMAND" >&"$stderr"' ERR
skip() { echo "$*"; exit 77; }

# into_namespaces "$0" "$@": restarts the script with its own mounts and processes.
into_namespaces() {
  [ "$(id -u)" = 0 ] || skip "needs root: a clean root is made by debootstrap and entered by chroot"
  [ -z "${ZTCP_IN_NAMESPACES:-}" ] || return 0
  local mounts=(--mount --propagation private --mount-proc)
  # In a chroot / is no mount point, and can't be made private.
  mountpoint -q / || mounts=(--mount --propagation unchanged)
  ZTCP_IN_NAMESPACES=1 exec unshare "${mounts[@]}" --pid --fork --kill-child "$@"
}

# make_root SUITE: makes a minimal root in $root, which is removed when the script ends.
# ZTCP_CLEAN_ROOT names a folder that contains one already; it is copied.
make_root() {
  local suite=$1
  work=$(mktemp -d "${TMPDIR:-/var/tmp}/ztcp-packages.XXXXXX")
  root=$work/root
  trap 'cd /; umount "$root/dev/shm" "$root/sys" "$root/proc" 2>/dev/null; rm -rf --one-file-system "$work"' EXIT
  trap 'exit 143' TERM INT
  say "clean root of $suite"
  if [ -n "${ZTCP_CLEAN_ROOT:-}" ]; then
    cp -a --one-file-system "$ZTCP_CLEAN_ROOT" "$root"
  else
    bootstrap "$suite"
  fi
  mount_system
}

bootstrap() {
  local suite=$1 mirror
  command -v debootstrap >/dev/null || skip "needs debootstrap: tools/install-packages package"
  # shellcheck disable=SC2016  # $(SITE) is apt's own variable.
  mirror=$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' | grep -m 1 'debian/*$') ||
    skip "apt is set up with no Debian mirror"
  timeout 400 debootstrap --variant=minbase "$suite" "$root" "$mirror" >"$work/debootstrap.log" 2>&1 || {
    tail -n 20 "$work/debootstrap.log" >&2
    grep -qE "Failed getting release file|Couldn't download|Unable to connect" "$work/debootstrap.log" &&
      skip "the Debian mirror does not answer"
    fail "debootstrap $suite"
  }
}

# DPDK counts the CPUs in sysfs; memif's memory is in /dev/shm.
mount_system() {
  mkdir -p "$root/dev/shm"
  mount -t proc proc "$root/proc"
  mount -t sysfs -o ro sys "$root/sys"
  mount -t tmpfs tmp "$root/dev/shm"
}

in_root() {
  chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 \
    DEBIAN_FRONTEND=noninteractive "$@"
}

# run_job SECONDS [NAME=VALUE...]: a local fabric, its switch and an all-reduce over two ranks, by
# an ordinary user, from the installed files; the loader finds the plugin.
run_job() {
  local budget=$1
  shift
  # shellcheck disable=SC2016  # Expanded inside.
  in_root "$@" JOB_SECONDS="$budget" setpriv --reuid 65534 --regid 65534 --clear-groups \
    bash -euc '
      fabric=$(mktemp -d)
      cd "$fabric"
      ztcp_setup --local 2 --topology switch --dir "$fabric" >setup.out
      grep -q "setup successfully" setup.out
      ztcp_switch --config ztcp.conf --exit-with-parent --ready-fd 3 3>ready >switch.out 2>&1 &
      switch=$!
      for _ in $(seq 300); do
        if grep -q ready ready; then break; fi
        kill -0 $switch || { cat switch.out >&2; exit 1; }
        sleep 0.1
      done
      ztcp_setup --check --config ztcp.conf >check.out || { cat check.out >&2; [ $? -lt 2 ]; }
      if grep -q FAULT check.out; then exit 1; fi
      status=0
      ztcp_perf --plugin libnccl-net.so --config ztcp.conf --ranks 2 --op all_reduce --min 8 \
        --max 4M --factor 8 --iters 100000 --time-budget "$JOB_SECONDS" --check \
        --log info || status=$?
      kill $switch
      wait $switch || true
      rm -rf "$fabric"
      exit $status'
}

# The number of processes that have the plugin mapped; with " (deleted)": the one that an upgrade
# replaced.
mapped() { in_root bash -c "grep -l 'libnccl-net\\.so$1\$' /proc/[0-9]*/maps 2>/dev/null" | wc -l; }

# await_job PID LOG: waits until both ranks of a job run.
await_job() {
  for _ in $(seq 200); do
    [ "$(mapped '')" -lt 2 ] || return 0
    kill -0 "$1" 2>/dev/null || break
    sleep 0.1
  done
  cat "$2" >&2
  fail "the job does not run"
}

# True if the library is there only by its switched-off name.
is_off() {
  [ ! -e "$root$1" ] && [ -e "$root$1_bak" ]
}
