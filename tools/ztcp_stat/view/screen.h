// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The view as lines of text: header, worst finding, processes, devices, connections. Pure.
#pragma once

#include <cstddef>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "tools/ztcp_stat/look/look.h"
#include "tools/ztcp_stat/view/rows.h"
#include "tools/ztcp_stat/why/finding.h"

namespace ztcp::stat {

struct Style {
  std::size_t width = 0;   // Columns; 0: any.
  std::size_t height = 0;  // Lines; 0: any.
  bool has_colour = false;
  bool is_unicode = false;
};

// Rates of the last looks by connection, for the sparklines of the live view.
class History {
 public:
  static constexpr std::size_t kLooks = 12;
  void add(const Rows& rows);  // Forgets connections that are gone.
  std::string sparkline_of(const ConnectionKey& key, bool is_unicode) const;
  bool has_several() const { return looks_ > 1; }

 private:
  std::map<ConnectionKey, std::deque<double>> rates_;
  std::size_t looks_ = 0;
};

struct Choice {
  Sort sort = Sort::kWorst;
  std::string filter;
  bool is_typing = false;     // The filter is being typed.
  std::size_t first_row = 0;  // First connection shown, when not all fit.
};

// `history` null: no sparklines. `keys`: the last line names the keys.
std::vector<std::string> screen_of(const Look* before, const Look& after, const Rows& rows,
                                   const Findings& findings, const History* history,
                                   const Choice& choice, const Style& style, bool keys);

}  // namespace ztcp::stat
