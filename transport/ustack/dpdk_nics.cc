// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// NICs of the product: DPDK ports and tap interfaces, claimed by lock files.
#include <memory>
#include <string>
#include <utility>

#include "transport/core/log.h"
#include "transport/link/claim.h"
#include "transport/link/dpdk_link.h"
#include "transport/link/eal.h"
#include "transport/link/tap_link.h"
#include "transport/ustack/nic.h"
#include "transport/ustack/ustack_transport.h"

namespace ztcp::ustack {
namespace {

class DpdkClaim final : public NicClaim {
 public:
  explicit DpdkClaim(link::Claim claim) : claim_(std::move(claim)) {}

 private:
  link::Claim claim_;
};

link::MemifConfig memif_config(const config::Nic& nic) {
  link::MemifConfig out;
  out.socket_path = nic.memif_socket;
  out.role = nic.memif_role == config::MemifRole::kServer ? link::MemifRole::kServer
                                                          : link::MemifRole::kClient;
  out.id = nic.memif_id;
  out.mac = nic.mac;
  out.mtu_bytes = nic.mtu_bytes;
  return out;
}

class DpdkNics final : public NicSource {
 public:
  explicit DpdkNics(const config::Fabric& fabric) : fabric_(fabric) {}

  Result<std::unique_ptr<NicClaim>> claim(const config::Nic& nic, std::string* holder) override {
    const std::string name =
        nic.driver == config::NicDriver::kPci ? nic.pci : "software-" + nic.name;
    link::ClaimHolder who;
    auto taken = link::Claim::take(fabric_.run_dir, name, &who);
    if (taken) return std::make_unique<DpdkClaim>(std::move(*taken));
    if (taken.error().code == Errc::kBusy) {
      *holder = link::to_string(who);
    } else {
      log::warn(
          "{}: the claim in {} failed: {} (errno {}); every process of the job must be able "
          "to write there",
          nic.name, fabric_.run_dir, taken.error().where, taken.error().sys_errno);
    }
    return tl::unexpected(taken.error());
  }

  Result<std::unique_ptr<link::Link>> open(const config::Nic& nic) override {
    switch (nic.driver) {
      case config::NicDriver::kMemif:
        ZTCP_CHECK(link::start_eal(plain_memory()));
        return link::open_memif(memif_config(nic));
      case config::NicDriver::kTap: {
        link::TapConfig tap;
        tap.interface = nic.tap_interface;
        tap.mac = nic.mac;
        tap.mtu_bytes = nic.mtu_bytes;
        return link::open_tap(tap);
      }
      case config::NicDriver::kPci:
        break;
    }
    log::warn("{}: this driver is not in this build", nic.name);
    return fail(Errc::kBadConfig, "open NIC");
  }

  void on_thread_start() override { link::register_poller_thread(); }
  void on_thread_end() override { link::unregister_poller_thread(); }

 private:
  // EAL can't grow later, so it gets room for every NIC of the fabric; pages that no NIC uses are
  // never touched.
  link::EalConfig plain_memory() const {
    std::uint32_t mib = link::kEalBaseMib;
    for (const config::Nic& nic : fabric_.nics) {
      if (nic.driver == config::NicDriver::kMemif) mib += link::memif_memory_mib(memif_config(nic));
    }
    link::EalConfig out;
    out.memory = link::EalMemory::kPlain;
    out.node_memory_mib = {mib};
    return out;
  }

  const config::Fabric fabric_;
};

}  // namespace

Result<std::unique_ptr<Transport>> create(const config::Fabric& fabric, GpuProbe probe) {
  return create(fabric, probe, std::make_shared<DpdkNics>(fabric));
}

}  // namespace ztcp::ustack
