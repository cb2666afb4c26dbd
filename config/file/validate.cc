// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include <algorithm>
#include <set>
#include <string_view>

#include <fmt/format.h>

#include "config/file/fields.h"
#include "config/file/key_text.h"
#include "config/file/parse_state.h"
#include "config/schema.h"
#include "core/pci_path.h"

namespace ztcp::config {
namespace {

bool is_hex(std::string_view text, std::size_t size) {
  return text.size() == size && std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
         });
}

// Validates the keys of one NIC; messages name it.
class NicValidator {
 public:
  NicValidator(ParseState& state, std::size_t index)
      : state_(state), index_(index), nic_(state.fabric.nics[index]) {}

  void validate() {
    if (!state_.has(key("driver"))) return;  // Reported already; the rest depends on it.
    for (const Key& known : keys())
      if (known.section == "nic") validate_driver(known);
    form("name", nic_.name, is_name(nic_.name, 31));
    form("pci", nic_.pci, is_pci_address(nic_.pci));
    form("gpu_pci", nic_.gpu_pci, nic_.gpu_pci.empty() || is_pci_address(nic_.gpu_pci));
    form("gpu_uuid", nic_.gpu_uuid, nic_.gpu_uuid.empty() || nic_.gpu_uuid.starts_with("GPU-"));
    form("kernel_driver", nic_.kernel_driver,
         nic_.kernel_driver.empty() || is_name(nic_.kernel_driver, 63));
    form("memif_socket", nic_.memif_socket, !nic_.memif_socket.empty());
    form("tap_interface", nic_.tap_interface, is_name(nic_.tap_interface, 15));
    form("interface", nic_.interface, is_name(nic_.interface, 15));
    form("device", nic_.device, is_name(nic_.device, kLongestDeviceName));
    form("merge", nic_.merge, nic_.merge.empty() || is_name(nic_.merge, 31));
    validate_socket();
    validate_mtu();
    validate_vlan();
    validate_mac();
    validate_address();
    validate_gateway();
    validate_ipv6_mtu();
    validate_ports();
  }

 private:
  std::string key(std::string_view name) const { return nic_key(index_, name); }
  std::string_view driver() const { return name_of(nic_.driver); }

  void fault(std::string_view name, std::string what, std::string mend) {
    state_.find_fault(key(name), fmt::format("{}{}", who(), what), std::move(mend));
  }
  std::string who() const {
    return is_name(nic_.name, 31) ? fmt::format("nic \"{}\": ", nic_.name)
                                  : fmt::format("nic[{}]: ", index_);
  }

  // Reports keys of other drivers, and missing keys that this driver requires.
  void validate_driver(const Key& known) {
    const bool present = state_.has(key(known.name));
    if (present && !is_for(known, driver()))
      fault(known.name,
            fmt::format("{} is for driver = {}, this NIC has \"{}\"", known.name,
                        alternatives(known.drivers), driver()),
            fmt::format("remove {}, or correct the driver", known.name));
    if (!present && !state_.is_faulty(key(known.name)) && lists(known.required_for, driver()))
      fault("", fmt::format("{} is missing; driver = \"{}\" needs it", known.name, driver()),
            fmt::format("add {} = ... ({}): {}", known.name, known.form, known.meaning));
  }

  void form(std::string_view name, std::string_view value, bool good) {
    if (good || !state_.has(key(name))) return;
    const Key* known = find_key("nic", name);
    if (!is_for(*known, driver())) return;  // Reported above.
    fault(name, fmt::format("{} = \"{}\" is not {}", name, value, known->form),
          fmt::format("correct {}", name));
  }

  void validate_socket() {
    const auto at = nic_.memif_socket.find_first_of(kNotInMemifPath);
    if (nic_.driver != NicDriver::kMemif || at == std::string::npos) return;
    const char c = nic_.memif_socket[at];
    fault("memif_socket",
          fmt::format("memif_socket = \"{}\" has {} in its path, which DPDK can't take",
                      nic_.memif_socket,
                      c == ' '    ? std::string("a blank")
                      : c == '\n' ? std::string("a line end")
                                  : fmt::format("a '{}'", c)),
          "move the fabric to a folder without blanks and , = [ ] \" in its path");
  }

  void validate_mtu() {
    const Key* known = find_key("nic", "mtu_bytes");
    const bool is_of_nic = is_dpdk_nic(nic_.driver) || nic_.driver == NicDriver::kXdp;
    if (is_of_nic && nic_.mtu_bytes > known->max_pci)
      fault("mtu_bytes",
            fmt::format("mtu_bytes = {} is outside {}..{} bytes for driver = \"{}\"",
                        nic_.mtu_bytes, known->min, known->max_pci, driver()),
            "write the MTU of the network, usually 1500, 8500 or 9000");
  }

  void validate_vlan() {
    if (nic_.vlan_priority >= 0 && nic_.vlan_id == 0 && is_of_userspace_tcp())
      fault("vlan_priority",
            fmt::format("vlan_priority = {} without vlan_id: untagged frames have no priority",
                        nic_.vlan_priority),
            "write the vlan_id, or remove the line");
  }

  // No path of IPv6 may carry less (RFC 8200 section 5).
  void validate_ipv6_mtu() {
    constexpr std::uint16_t kLeastBytes = 1280;
    if (!is_of_userspace_tcp() || !state_.has(key("address")) || nic_.address.address.is_v4() ||
        nic_.mtu_bytes >= kLeastBytes)
      return;
    fault("mtu_bytes",
          fmt::format("mtu_bytes = {} is below {}, which IPv6 (address = \"{}\") needs",
                      nic_.mtu_bytes, kLeastBytes, address_text(nic_.address)),
          "write the MTU of the network, usually 1500, 8500 or 9000");
  }

  void validate_mac() {
    if (!state_.has(key("mac"))) return;
    if (nic_.mac == MacAddress{} || (nic_.mac.bytes[0] & 1) != 0)
      fault("mac", fmt::format("mac = \"{}\" can't belong to a NIC", to_string(nic_.mac)),
            "write the NIC's own address: the second hex digit is even");
  }

  void validate_address() {
    if (!state_.has(key("address"))) return;
    if (nic_.address == kAutoAddress) return validate_auto_address();
    if (const char* reason = fault_of(nic_.address))
      fault("address", fmt::format("address = \"{}\" {}", to_string(nic_.address), reason),
            "write the address that the network gave this NIC");
  }

  // The other drivers have their address from the kernel, and a mesh has no router.
  void validate_auto_address() {
    const bool is_mesh = nic_.driver == NicDriver::kMemif && nic_.memif_role == MemifRole::kMesh;
    if (is_mesh)
      fault("address", "address = \"auto\", but no router advertises itself in a mesh",
            "write an address: the NICs of a mesh are on no network");
    else if (!is_of_userspace_tcp() || is_past_kernel(nic_.driver))
      fault("address",
            fmt::format("address = \"auto\" is not for driver = \"{}\": the kernel has the address",
                        driver()),
            "write the address that ip address shows");
  }

  bool is_of_userspace_tcp() const {
    return nic_.driver == NicDriver::kPci || nic_.driver == NicDriver::kMemif ||
           nic_.driver == NicDriver::kTap || is_past_kernel(nic_.driver);
  }

  // Why no host can have this address; null: one can.
  const char* fault_of(const IpPrefix& own) const {
    if (own.address.is_v4()) return fault_of(own.v4());
    const bool is_loopback = own.address == IpAddress(0, 1);
    if (own.address == IpAddress() || own.address.high >> 56 == 0xff ||
        (is_loopback && is_of_userspace_tcp()))
      return "is not an address of a host";
    // Reserved for routers (RFC 4291 section 2.6.1), except on links of two (RFC 6164).
    if (own.length <= 64 && own.address.low == 0) return "is the address of the network itself";
    return nullptr;
  }

  const char* fault_of(const Ipv4Prefix& own) const {
    const std::uint32_t value = own.address.value;
    const std::uint32_t host = value & ~own.mask();
    const bool is_loopback = value >> 24 == 127;
    if (value >> 24 == 0 || value >> 28 >= 14 || (is_loopback && is_of_userspace_tcp()))
      return "is not an address of a host";
    if (own.length < 31 && host == 0) return "is the address of the network itself";
    if (own.length < 31 && host == ~own.mask()) return "is the network's broadcast address";
    return nullptr;
  }

  void validate_gateway() {
    if (!nic_.gateway || !state_.has(key("address"))) return;
    const IpAddress gateway = *nic_.gateway;
    const IpAddress own = nic_.address.address;
    const auto refuse = [&](const std::string& why) {
      fault("gateway", fmt::format("gateway = \"{}\" {}", gateway_text(gateway), why),
            "write the next hop, or remove the line");
    };
    if (gateway == kAutoGateway && own.is_v4())
      refuse(fmt::format(
          "needs IPv6, whose routers advertise themselves, and address = \"{}\" is IPv4",
          to_string(nic_.address)));
    else if (gateway != kAutoGateway && gateway == own)
      refuse("is the NIC itself");
    else if (gateway != kAutoGateway && gateway.is_v4() != own.is_v4())
      refuse(fmt::format("and address = \"{}\" are of two families", address_text(nic_.address)));
    else if (own.is_link_local_v6())
      refuse(
          fmt::format("leads nowhere: no router forwards packets of address = \"{}\", which is "
                      "link-local",
                      to_string(nic_.address)));
    else if (!own.is_v4() && gateway != kAutoGateway && !nic_.address.may_be_host(gateway))
      refuse("is not an address of a host");
  }

  void validate_ports() {
    const std::uint32_t listening = state_.fabric.messages.listen_port;
    // One for each process.
    const std::uint32_t last_listening = listening + nic_.processes - 1;
    if (is_past_kernel(nic_.driver) && nic_.first_port <= last_listening &&
        listening <= nic_.last_port && state_.has(key("last_port")))
      fault("last_port",
            fmt::format("messages.listen_port = {}{} is among the source ports {}-{}", listening,
                        nic_.processes == 1 ? "" : fmt::format(" to {}", last_listening),
                        nic_.first_port, nic_.last_port),
            "write first_port and last_port of a range without it");
    if (nic_.driver == NicDriver::kXdp && last_listening > 65535)
      fault("processes",
            fmt::format("processes = {} needs the ports {} to {}, one for each (listen_port)",
                        nic_.processes, listening, last_listening),
            "write a lower messages.listen_port");
    if (nic_.first_port <= nic_.last_port) return;
    if (!state_.has(key("last_port")))
      fault("first_port",
            fmt::format("first_port = {} is above last_port, which is {} by default",
                        nic_.first_port, nic_.last_port),
            fmt::format("write last_port = {} below it, one port for each process, or larger",
                        std::min(nic_.first_port + 63, 65535)));
    else
      fault("last_port",
            fmt::format("last_port = {} is below first_port = {}", nic_.last_port, nic_.first_port),
            "write the larger one as last_port");
  }

  ParseState& state_;
  std::size_t index_;
  const Nic& nic_;
};

void validate_hugepages(ParseState& state) {
  const std::uint32_t page_kib = state.fabric.hugepages.page_kib;
  if (page_kib != 0 && page_kib != 2048 && page_kib != 1048576) {
    state.find_fault("hugepages.page_kib",
                     fmt::format("hugepages.page_kib = {} is not {}", page_kib,
                                 find_key("hugepages", "page_kib")->form),
                     "write 2048, or 1048576 for pages of 1 GiB");
    return;
  }
  const auto& nics = state.fabric.nics;
  const auto pci = std::find_if(nics.begin(), nics.end(),
                                [](const Nic& nic) { return is_dpdk_nic(nic.driver); });
  if (page_kib == 0 && pci != nics.end() && !state.is_faulty("hugepages.page_kib") &&
      state.has(nic_key(static_cast<std::size_t>(pci - nics.begin()), "driver")))
    state.find_fault(
        "hugepages.page_kib",
        fmt::format("hugepages.page_kib = 0, but nic \"{}\" {} and needs "
                    "hugepages",
                    pci->name,
                    pci->driver == NicDriver::kPci ? "is on PCI" : "has driver = \"mlx5\""),
        "write page_kib = 2048 (or 1048576) under [hugepages]");
}

void validate_host(ParseState& state) {
  const Fabric& fabric = state.fabric;
  if (!fabric.name.empty() && !is_name(fabric.name, 63))
    state.find_fault(
        "name", fmt::format("name = \"{}\" is not {}", fabric.name, find_key("", "name")->form),
        "choose another name");
  if (!fabric.host.machine_id.empty() && !is_hex(fabric.host.machine_id, 32))
    state.find_fault("host.machine_id",
                     fmt::format("host.machine_id = \"{}\" is not {}", fabric.host.machine_id,
                                 find_key("host", "machine_id")->form),
                     "copy the line of /etc/machine-id");
  const auto validate_account = [&](std::string_view key, const std::string& name) {
    if (!name.empty() && !is_name(name, 63))
      state.find_fault(
          fmt::format("host.{}", key),
          fmt::format("host.{} = \"{}\" is not {}", key, name, find_key("host", key)->form),
          "write the name as getent shows it");
  };
  validate_account("user", fabric.host.user);
  validate_account("group", fabric.host.group);
  if (fabric.run_dir.empty())
    state.find_fault("run_dir", "run_dir is empty", "name a folder, or remove the line");
}

void validate_messages(ParseState& state) {
  const Messages& messages = state.fabric.messages;
  if (messages.max_chunk_kib % 4 != 0)
    state.find_fault(
        "messages.max_chunk_kib",
        fmt::format("messages.max_chunk_kib = {} is not a multiple of 4", messages.max_chunk_kib),
        fmt::format("write {}", messages.max_chunk_kib / 4 * 4 + 4));
  if (!is_name(messages.watch_interface, 15))
    state.find_fault(
        "messages.watch_interface",
        fmt::format("messages.watch_interface = \"{}\" is not {}", messages.watch_interface,
                    find_key("messages", "watch_interface")->form),
        "correct watch_interface, or remove the line");
  // The key itself is never shown: problems go into logs.
  if (!messages.cluster_key.empty() && !is_hex(messages.cluster_key, 64))
    state.find_fault("messages.cluster_key",
                     fmt::format("messages.cluster_key has {} characters or letters other than "
                                 "hex, wanted 64 hex digits",
                                 messages.cluster_key.size()),
                     "openssl rand -hex 32, the same on all hosts");
  if (is_hex(messages.cluster_key, 64) &&
      messages.cluster_key.find_first_not_of('0') == std::string::npos)
    state.find_fault("messages.cluster_key",
                     "messages.cluster_key is all zeros, which is no secret",
                     "openssl rand -hex 32, the same on all hosts");
}

void validate_tcp(ParseState& state) {
  const Tcp& tcp = state.fabric.tcp;
  const auto longer_than_rto = [&](std::string_view key, std::uint32_t value_ms) {
    if (std::uint64_t{value_ms} * 1000 < tcp.rto_min_us)
      state.find_fault(fmt::format("tcp.{}", key),
                       fmt::format("tcp.{} = {} ms is shorter than tcp.rto_min_us = {} us", key,
                                   value_ms, tcp.rto_min_us),
                       "make it several times longer");
  };
  longer_than_rto("connect_timeout_ms", tcp.connect_timeout_ms);
  longer_than_rto("user_timeout_ms", tcp.user_timeout_ms);
  if (!tcp.kernel_congestion_control.empty() && !is_name(tcp.kernel_congestion_control, 15))
    state.find_fault("tcp.kernel_congestion_control",
                     fmt::format("tcp.kernel_congestion_control = \"{}\" is no name of a "
                                 "congestion control",
                                 tcp.kernel_congestion_control),
                     "write a name out of /proc/sys/net/ipv4/tcp_available_congestion_control");
}

void validate_poller(ParseState& state) {
  std::set<std::uint32_t> seen;
  for (const std::uint32_t cpu : state.fabric.poller.cpus)
    if (!seen.insert(cpu).second)
      state.find_fault("poller.cpus", fmt::format("poller.cpus names CPU {} twice", cpu),
                       "name each CPU once");
}

}  // namespace

std::string nic_key(std::size_t index, std::string_view key) {
  return key.empty() ? fmt::format("nic[{}]", index) : fmt::format("nic[{}].{}", index, key);
}

void ParseState::find_fault(std::string_view key, std::string what, std::string mend) {
  auto it = places.find(key);
  // An absent key is reported where its section begins, else at the top of the file.
  if (it == places.end()) it = places.find(key.substr(0, key.rfind('.')));
  findings.push_back(
      {it == places.end() ? Position{} : it->second, std::move(what), std::move(mend)});
}

void validate(ParseState& state) {
  validate_host(state);
  validate_hugepages(state);
  validate_messages(state);
  validate_tcp(state);
  validate_poller(state);
  for (std::size_t i = 0; i < state.fabric.nics.size(); ++i) NicValidator(state, i).validate();
  validate_together(state);
}

}  // namespace ztcp::config
