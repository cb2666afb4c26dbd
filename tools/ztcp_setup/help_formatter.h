// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Shows an option in --help as its name, the name of its value, and its effect. Options that it
// excludes are not listed: using them together gives an error.
#pragma once

#include <string>

#include <CLI/CLI.hpp>

namespace ztcp::setup {

class HelpFormatter final : public CLI::Formatter {
 public:
  HelpFormatter() { column_width(34); }

  std::string make_option_opts(const CLI::Option* option) const override {
    // CLI11 adds the choices to the name of the value: "KIND:{mesh,switch}".
    const std::string type = option->get_type_name();
    std::string text = type.empty() ? "" : " " + type.substr(0, type.find(":{"));
    if (!option->get_default_str().empty()) text += "=" + option->get_default_str();
    return text;
  }
};

}  // namespace ztcp::setup
