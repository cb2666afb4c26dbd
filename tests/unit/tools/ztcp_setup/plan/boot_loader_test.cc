// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_setup/plan/boot_loader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/tools/ztcp_setup/fake_host.h"

namespace ztcp::setup {
namespace {

using test::FakeHost;
using testing::ElementsAre;
using testing::IsEmpty;

const std::string kWithDebian =
    "file path=etc/os-release text=ID=debian\nfile path=usr/sbin/update-grub text=\n";
const std::string kWithSystemdBoot =
    "file path=sys/firmware/efi/efivars/LoaderInfo-4a67b082-0a4c-41cf-b6c7-440b29bb8c4f "
    "text=s y s t e m d - b o o t   2 5 2\n";
const std::string kWithLine = "file path=etc/kernel/cmdline text=root=ZFS=rpool boot=zfs\n";
const std::string kWithProxmox =
    "file path=etc/kernel/proxmox-boot-uuids text=AAAA-BBBB\n"
    "file path=usr/sbin/proxmox-boot-tool text=\n";
const std::string kWithGrubby = "file path=usr/sbin/grubby text=\n";
const std::string kWithKernelInstall =
    "file path=usr/bin/kernel-install text=\n"
    "file path=usr/lib/modules/6.12.1/vmlinuz text=\n"
    "file path=usr/lib/modules/6.11.0/modules.dep text=\n";

BootLoader loader_of(const std::string& tree) {
  FakeHost host(tree);
  return boot_loader(host);
}

TEST(BootLoader, TheLoaderThatBootedCountsNotInstalledOnes) {
  EXPECT_EQ(loader_of(kWithDebian), BootLoader::kGrub);
  EXPECT_EQ(loader_of(kWithDebian + kWithProxmox + kWithLine), BootLoader::kGrub)
      << "a host without EFI";
  EXPECT_EQ(loader_of(kWithDebian + kWithProxmox + kWithLine + kWithSystemdBoot),
            BootLoader::kProxmox);
  EXPECT_EQ(loader_of(kWithDebian + kWithKernelInstall + kWithLine + kWithSystemdBoot),
            BootLoader::kKernelInstall);
  EXPECT_EQ(loader_of(kWithDebian + kWithSystemdBoot), BootLoader::kSystemdBoot);
  EXPECT_EQ(loader_of(kWithGrubby), BootLoader::kGrubby);
  EXPECT_EQ(loader_of(kWithGrubby + kWithSystemdBoot), BootLoader::kGrubby) << "Fedora's sdubby";
  EXPECT_EQ(loader_of(""), BootLoader::kUnknown);
}

TEST(BootLoader, ListsTheProgramsThatApplyASetting) {
  FakeHost grub(kWithDebian);
  EXPECT_THAT(
      loader_programs(grub, BootLoader::kGrub),
      ElementsAre(ElementsAre("update-grub"), ElementsAre("sync", "--file-system", "/boot")));
  FakeHost proxmox(kWithDebian + kWithProxmox);
  EXPECT_THAT(loader_programs(proxmox, BootLoader::kGrub),
              ElementsAre(ElementsAre("update-grub"), ElementsAre("proxmox-boot-tool", "refresh"),
                          ElementsAre("sync", "--file-system", "/boot")));
  FakeHost arch(kWithKernelInstall);
  EXPECT_THAT(loader_programs(arch, BootLoader::kKernelInstall),
              ElementsAre(ElementsAre("kernel-install", "add", "6.12.1",
                                      "/usr/lib/modules/6.12.1/vmlinuz")));
  EXPECT_THAT(loader_programs(arch, BootLoader::kSystemdBoot), IsEmpty());
}

TEST(BootLoader, ReadsTheCommandLineOfTheNextBoot) {
  const std::string running = "file path=proc/cmdline text=running\n";
  FakeHost entries(running +
                   "file path=boot/loader/entries/a.conf text=title A\\noptions root=/dev/sda1 "
                   "hugepages=512\n");
  EXPECT_THAT(line_of_next_boot(entries, BootLoader::kGrubby), testing::Contains("hugepages=512"));
  FakeHost variable(running + "file path=boot/loader/entries/a.conf text=options $kernelopts\n");
  EXPECT_THAT(line_of_next_boot(variable, BootLoader::kGrubby), ElementsAre("running"));
  FakeHost zfs(running + kWithLine);
  EXPECT_THAT(line_of_next_boot(zfs, BootLoader::kProxmox),
              ElementsAre("root=ZFS=rpool", "boot=zfs"));
}

TEST(BootLoader, KnowsWhetherAFileIsOlderThanTheBoot) {
  FakeHost host("file path=proc/stat text=cpu 1 2\\nbtime 1000\n" + kWithLine);
  host.modified[kKernelCommandLine] = 999;
  EXPECT_TRUE(is_older_than_boot(host, kKernelCommandLine));
  host.modified[kKernelCommandLine] = 1001;
  EXPECT_FALSE(is_older_than_boot(host, kKernelCommandLine));
  EXPECT_FALSE(is_older_than_boot(host, "/etc/absent"));
  FakeHost unknown(kWithLine);
  EXPECT_FALSE(is_older_than_boot(unknown, kKernelCommandLine));
}

}  // namespace
}  // namespace ztcp::setup
