// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Interfaces of the live kernel, in the test's own network namespace.
#pragma once

#include <cerrno>
#include <chrono>
#include <functional>
#include <sched.h>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tools/ztcp_setup/live/live_host.h"
#include "tools/ztcp_setup/resources/interface_restore.h"

namespace ztcp::setup {

// The live machine, but the test chooses a PCI function's interfaces.
class HostWithNic final : public LiveHost {
 public:
  HostWithNic() : LiveHost(Purpose::kChange) {}
  std::vector<std::string> list(const std::string& folder) override {
    if (!folder.ends_with("/net")) return {};
    for (const char* name : {"nic0", "eth7"})
      if (*link(name)) return {name};
    return {};
  }
  Result<std::string> read_value(const std::string& path) override {
    if (path.starts_with("/sys/class/net/nic0/ifindex"))
      return "5\n";  // /sys belongs to another namespace.
    if (manager && path == "/run/systemd/netif/state") return "OPER_STATE=routable\n";
    if (manager && pauses >= notices_after && path == "/run/systemd/netif/links/5")
      return "ADMIN_STATE=configuring\n";
    if (path.starts_with("/run/")) return fail(Errc::kSystem, "open", ENOENT);
    return LiveHost::read_value(path);
  }
  void pause(std::chrono::milliseconds time) override {
    ++pauses;
    if (manager)
      manager(pauses);
    else
      LiveHost::pause(time);
  }

  std::function<void(int)> manager;  // Runs in the n-th pause; absent: no interface is managed.
  int pauses = 0;
  int notices_after = 2;  // Pauses until the manager notices the interface.
};

class LiveNetwork : public testing::Test {
 protected:
  void SetUp() override {
    if (::unshare(CLONE_NEWNET) != 0 && ::unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0)
      GTEST_SKIP() << "no right to a network namespace";
    make_nic();
    ip("link set lo up");
  }

  void ip(const std::string& words) { static_cast<void>(shown(words)); }

  // Output of ip.
  std::string shown(const std::string& words) {
    std::vector<std::string> argv{"ip"};
    for (std::size_t begin = 0; begin < words.size();) {
      const auto end = std::min(words.find(' ', begin), words.size());
      argv.push_back(words.substr(begin, end - begin));
      begin = end + 1;
    }
    const auto result = host_.run(argv, std::chrono::seconds{30});
    EXPECT_TRUE(result.has_value() && result->exit_status == 0)
        << "ip " << words << ": " << (result ? result->output : "");
    return result ? result->output : "";
  }

  void make_nic() {
    ip("link add nic0 address 02:00:00:00:00:01 type veth peer name wire0");
    // Without an address of its own: its route would appear at an unpredictable time.
    ip("link set wire0 addrgenmode none up");
  }

  InterfaceState record(const std::string& name) {
    const auto link = host_.link(name);
    EXPECT_TRUE(link.has_value() && link->has_value());
    return **link;
  }

  // Simulates a driver change and back.
  Reverted lose_and_put_back(const InterfaceState& before, bool keep_name = true) {
    ip("link delete nic0");
    make_nic();
    if (!keep_name) ip("link set nic0 name eth7");
    Reverted restored;
    restore_interfaces(host_, "0000:01:00.0", {before}, restored);
    return restored;
  }

  static std::string words(const config::Problems& problems) {
    std::string text;
    for (const auto& problem : problems) text += to_string(problem) + "\n";
    return text;
  }

  static std::vector<std::string> commands(const std::vector<NetworkItem>& items) {
    std::vector<std::string> commands;
    for (const NetworkItem& item : items) commands.push_back(item.command);
    return commands;
  }

  HostWithNic host_;
};

}  // namespace ztcp::setup
