// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "config/machine/container.h"

#include <gtest/gtest.h>

#include "config/machine/live_machine.h"
#include "tests/support/tree.h"

namespace ztcp::config {
namespace {

constexpr const char* kProc = "26 1 0:23 / /proc rw,nosuid shared:13 - proc proc rw\n";

struct Case {
  const char* name;
  const char* file;       // Left by the runtime; empty: none.
  const char* mountinfo;  // Added to /proc's.
  bool contained;
};
class Container : public testing::TestWithParam<Case> {};

TEST_P(Container, IsRecognisedByMarksAndMounts) {
  test::Tree tree;
  tree.add_file("proc/self/mountinfo", std::string(kProc) + GetParam().mountinfo);
  if (*GetParam().file != '\0') tree.add_file(GetParam().file, "");
  LiveMachine machine(tree.root());
  EXPECT_EQ(in_container(machine), GetParam().contained);
}

constexpr const char* kZfs = "30 1 0:26 / / rw shared:1 - zfs tank/ROOT/debian rw,xattr\n";
constexpr const char* kBtrfs = "30 1 0:26 /@ / rw shared:1 - btrfs /dev/sda2 rw,subvol=/@\n";
constexpr const char* kExt4 = "30 1 259:1 / / rw shared:1 - ext4 /dev/root rw\n";

INSTANTIATE_TEST_SUITE_P(
    Runtimes, Container,
    testing::Values(
        Case{"machine_on_ext4", "", kExt4, false}, Case{"machine_on_zfs", "", kZfs, false},
        Case{"machine_on_btrfs", "", kBtrfs, false},
        Case{"machine_of_lxc", "",
             "30 1 259:1 / / rw - ext4 /dev/root rw\n"
             "90 30 0:50 / /var/lib/lxcfs rw - fuse.lxcfs lxcfs rw\n",
             false},
        Case{"docker_overlay", "", "500 400 0:60 / / rw - overlay overlay rw,lowerdir=/a\n", true},
        Case{"docker_zfs", ".dockerenv",
             "500 400 0:60 / / rw - zfs tank/docker/1f2e rw\n"
             "520 500 259:1 /docker/containers/1f2e/hosts /etc/hosts rw - ext4 /dev/root rw\n",
             true},
        Case{"docker_btrfs", ".dockerenv",
             "500 400 0:60 /docker/btrfs/subvolumes/1f2e / rw - btrfs /dev/sda2 rw\n"
             "520 500 0:60 /docker/containers/1f2e/hosts /etc/hosts rw - btrfs /dev/sda2 rw\n",
             true},
        Case{"machine_made_of_an_image", ".dockerenv", kExt4, false},
        Case{"docker_aufs", "", "500 400 0:60 / / rw - aufs none rw\n", true},
        Case{"podman", "run/.containerenv", kBtrfs, true},
        Case{"rootless_podman", "",
             "500 400 0:60 / / rw,nodev - fuse.fuse-overlayfs fuse-overlayfs rw\n", true},
        Case{"nspawn", "run/systemd/container", kBtrfs, true},
        Case{"apptainer_folder", ".singularity.d/runscript", kExt4, true},
        Case{"apptainer_image", "", "500 400 7:0 / / ro - squashfs /dev/loop0 ro\n", true},
        Case{"rootless_apptainer", "",
             "500 400 0:60 / / ro - fuse.squashfuse_ll squashfuse_ll ro\n", true},
        Case{"lxc_without_systemd", "",
             "500 400 259:3 / / rw - ext4 /dev/mapper/pve-vm--100--disk--0 rw\n"
             "510 500 0:50 /proc/cpuinfo /proc/cpuinfo rw - fuse.lxcfs lxcfs rw\n",
             true},
        // Kubernetes with containerd and another snapshotter leaves no mark.
        Case{"pod_on_zfs", "",
             "500 400 0:60 / / rw - zfs tank/containerd/12 rw\n"
             "520 500 259:1 /var/lib/kubelet/pods/1/etc-hosts /etc/hosts rw - ext4 /dev/root rw\n",
             true},
        // The boot image is mounted below the root's file system.
        Case{"root_over_an_image", "",
             "29 1 7:0 / / ro - squashfs /dev/loop0 ro\n30 29 259:1 / / rw - ext4 /dev/root rw\n",
             false}),
    [](const auto& row) { return row.param.name; });

TEST(Container, UnreadableFilesMeanNoContainer) {
  const test::Tree tree;
  LiveMachine machine(tree.root());
  EXPECT_FALSE(in_container(machine));
}

}  // namespace
}  // namespace ztcp::config
