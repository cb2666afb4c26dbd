// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/common/shared_config.h"

#include <gtest/gtest.h>

namespace ztcp::tools {
namespace {

config::Fabric fabric() {
  config::Fabric one;
  one.messages.cluster_key = std::string(64, 'a');
  one.nics.resize(2);
  one.nics[0].name = "ztcp0";
  one.nics[1].name = "ztcp1";
  return one;
}

TEST(ProbeSharedConfig, ThePlacesOfAHostDoNotCount) {
  config::Fabric other = fabric();
  other.host.hostname = "gpu07";
  other.path = "/etc/other.conf";
  other.run_dir = "/run/other";
  other.nics[0].pci = "0000:3b:00.0";
  other.nics[0].interface = "eth7";
  other.nics[1].mac = {{2, 0, 0, 0, 0, 7}};
  other.nics[1].numa_node = 1;
  other.poller.cpus = {1, 2};
  EXPECT_EQ(shared_hash(other), shared_hash(fabric()));
}

TEST(ProbeSharedConfig, SettingsOfTheJobCount) {
  config::Fabric other = fabric();
  other.messages.cluster_key[0] = 'b';
  EXPECT_NE(shared_hash(other), shared_hash(fabric()));
  other = fabric();
  other.tcp.rto_min_us *= 2;
  EXPECT_NE(shared_hash(other), shared_hash(fabric()));
  other = fabric();
  other.nics.pop_back();
  EXPECT_NE(shared_hash(other), shared_hash(fabric()));
}

TEST(ProbeSharedConfig, HashIsTheBeginOfSha256) {
  EXPECT_EQ(short_hash("abc"), "ba7816bf8f01");  // FIPS 180-2, appendix B.1.
}

}  // namespace
}  // namespace ztcp::tools
