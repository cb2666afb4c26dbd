// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// A tree as set-up's machine: files and accounts are the tree's, and so is what rtnetlink and the
// programs that keep units and boot entries would say.
#pragma once

#include "tests/support/tree.h"
#include "tools/ztcp_setup/live/live_host.h"

namespace ztcp::setup::test {

class TreeHost final : public LiveHost {
 public:
  explicit TreeHost(const ztcp::test::Tree& tree) : LiveHost(tree.root()), tree_(tree) {}
  tl::expected<config::Network, config::Problem> network() override { return tree_.network(); }

  Result<ProgramResult> run(const std::vector<std::string>& argv, Seconds) override {
    if (argv.at(0) == "grubby") return ProgramResult{0, false, boot_entries()};
    if (argv.at(0) != "systemctl") return ProgramResult{127, false, ""};
    const std::string wants = "/etc/systemd/system/multi-user.target.wants/" + argv.at(2);
    return ProgramResult{0, false, link_target(wants) ? "enabled\n" : "disabled\n"};
  }

 private:
  std::string boot_entries() {
    const std::string folder = "/boot/loader/entries/";
    std::string told;
    for (const std::string& name : list(folder)) {
      const std::string text = read_value(folder + name).value_or("");
      const auto at = text.find("options ");
      if (at == std::string::npos) continue;
      told += "kernel=\"" + name + "\"\nargs=\"" +
              text.substr(at + 8, text.find('\n', at) - at - 8) + "\"\n";
    }
    return told;
  }

  const ztcp::test::Tree& tree_;
};

}  // namespace ztcp::setup::test
