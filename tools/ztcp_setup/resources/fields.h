// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The fields of a journal record, by name. A record names its fields in one function, which both
// writes and reads them: the caller passes a Fields that writes, or one that reads.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tools/ztcp_setup/host/host.h"

namespace ztcp::setup {

class Fields {
 public:
  using Texts = std::vector<std::string>;
  using TextPairs = std::vector<std::pair<std::string, std::string>>;
  using NumberPairs = std::vector<std::pair<std::string, std::uint32_t>>;
  virtual ~Fields() = default;

  virtual void text(const char* name, std::string& value) = 0;  // UTF-8.
  virtual void bytes(const char* name, std::string& value) = 0;
  virtual void flag(const char* name, bool& value) = 0;
  virtual void number(const char* name, std::uint32_t& value) = 0;
  virtual void mode(const char* name, std::uint32_t& value) = 0;  // Written as for chmod: "0644".
  virtual void ownership(const char* name, Ownership& value) = 0;
  virtual void texts(const char* name, Texts& values) = 0;
  virtual void text_pairs(const char* name, TextPairs& pairs) = 0;
  virtual void byte_pairs(const char* name, TextPairs& pairs) = 0;
  virtual void number_pairs(const char* name, NumberPairs& pairs) = 0;
  // Left out of the journal if absent or zero.
  virtual void optional_number(const char* name, std::optional<std::uint32_t>& value) = 0;
  virtual void optional_time(const char* name, std::int64_t& value) = 0;

  // Nested records. A journal of an older schema may lack one that is `newer`.
  enum class Since : std::uint8_t { kAlways, kNewer };
  template <class Record, class Name>
  void records(const char* name, std::vector<Record>& values, Name&& name_fields,
               Since since = Since::kAlways) {
    list(
        name, since, [&] { return values.size(); },
        [&](std::size_t i, Fields& fields) {
          if (i == values.size()) values.emplace_back();
          name_fields(fields, values[i]);
        });
  }

 protected:
  using Size = std::function<std::size_t()>;
  using Item = std::function<void(std::size_t index, Fields& fields)>;
  // Writing: calls `item` for each of `size()`. Reading: for each in the journal.
  virtual void list(const char* name, Since since, const Size& size, const Item& item) = 0;
};

}  // namespace ztcp::setup
