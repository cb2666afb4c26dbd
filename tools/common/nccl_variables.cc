// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/common/nccl_variables.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace ztcp::tools {

Variables variables_of(const char* const* environment) {
  Variables variables;
  for (; environment != nullptr && *environment != nullptr; ++environment) {
    const std::string_view text = *environment;
    const auto equals = text.find('=');
    if (equals != std::string_view::npos)
      variables.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return variables;
}

std::vector<std::string> nccl_files(const Variables& environment) {
  std::vector<std::string> files;
  if (const auto it = environment.find(kNcclFileVariable);
      it != environment.end() && !it->second.empty())
    files.push_back(it->second);
  else if (const auto home = environment.find("HOME"); home != environment.end())
    files.push_back(home->second + "/.nccl.conf");
  files.emplace_back("/etc/nccl.conf");
  return files;
}

NcclVariables read_nccl_variables(Variables environment,
                                  const std::function<std::string(const std::string&)>& text_of) {
  NcclVariables out{.values = std::move(environment), .origins = {}};
  for (const std::string& file : nccl_files(out.values)) {
    const std::string text = text_of(file);
    for (std::string_view rest = text; !rest.empty();) {
      const std::string_view line = rest.substr(0, rest.find('\n'));
      rest.remove_prefix(std::min(rest.size(), line.size() + 1));
      const auto equals = line.find('=');
      if (line.starts_with('#') || equals == std::string_view::npos) continue;
      if (out.values.emplace(line.substr(0, equals), line.substr(equals + 1)).second)
        out.origins.emplace(line.substr(0, equals), file);
    }
  }
  return out;
}

std::string NcclVariables::value_of(std::string_view name) const {
  const auto it = values.find(name);
  return it == values.end() ? std::string() : it->second;
}

std::string NcclVariables::place_of(std::string_view name) const {
  const auto it = origins.find(name);
  return it == origins.end() ? std::string(name) : fmt::format("{} in {}", name, it->second);
}

}  // namespace ztcp::tools
