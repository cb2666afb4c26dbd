// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The variables that NCCL sees: those of the environment, then those of its files, which never
// override an earlier one.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace ztcp::tools {

using Variables = std::map<std::string, std::string, std::less<>>;
Variables variables_of(const char* const* environment);

// Names another file than ~/.nccl.conf.
inline constexpr const char* kNcclFileVariable = "NCCL_CONF_FILE";

// NCCL reads a file of the user's, then the machine's.
std::vector<std::string> nccl_files(const Variables& environment);

struct NcclVariables {
  Variables values;
  Variables origins;  // For a variable set by a file only: the file.

  // Empty: not set.
  std::string value_of(std::string_view name) const;
  // Formats "NCCL_NET", "NCCL_NET in /etc/nccl.conf".
  std::string place_of(std::string_view name) const;
};

// `text_of` returns a file's content; empty: there is none.
NcclVariables read_nccl_variables(Variables environment,
                                  const std::function<std::string(const std::string&)>& text_of);

}  // namespace ztcp::tools
