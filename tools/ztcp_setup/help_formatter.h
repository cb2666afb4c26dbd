// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// How --help shows an option: its name, the name of its value, and what it does. Which options it
// can't stand beside is told when somebody tries.
#pragma once

#include <string>

#include <CLI/CLI.hpp>

namespace ztcp::setup {

class HelpFormatter final : public CLI::Formatter {
 public:
  HelpFormatter() { column_width(34); }

  std::string make_option_opts(const CLI::Option* option) const override {
    // The library adds the choices to the name of the value: "KIND:{mesh,switch}".
    const std::string type = option->get_type_name();
    std::string text = type.empty() ? "" : " " + type.substr(0, type.find(":{"));
    if (!option->get_default_str().empty()) text += "=" + option->get_default_str();
    return text;
  }
};

}  // namespace ztcp::setup
