// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Prometheus' text format, version 0.0.4: families of samples with HELP and TYPE lines.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ztcp::stat {

// Ordered labels of one sample, already escaped.
class Labels {
 public:
  Labels() = default;
  Labels(std::initializer_list<std::pair<std::string_view, std::string_view>> labels) {
    for (const auto& [name, value] : labels) add(name, value);
  }
  void add(std::string_view name, std::string_view value);
  Labels with(std::string_view name, std::string_view value) const {
    Labels out = *this;
    out.add(name, value);
    return out;
  }
  const std::string& text() const { return text_; }  // `a="1",b="x"`.

 private:
  std::string text_;
};

// Samples of one metric. The format wants them together, under one HELP and TYPE.
class Family {
 public:
  // `type`: "counter", "gauge" or "histogram".
  Family(std::string name, std::string type, std::string help)
      : name_(std::move(name)), type_(std::move(type)), help_(std::move(help)) {}

  void add(const Labels& labels, double value) { add_suffixed("", labels, value); }
  void add(const Labels& labels, std::uint64_t value) { add_suffixed("", labels, value); }
  void add_suffixed(std::string_view suffix, const Labels& labels, double value);
  void add_suffixed(std::string_view suffix, const Labels& labels, std::uint64_t value);

  const std::string& name() const { return name_; }
  const std::string& type() const { return type_; }
  const std::string& help() const { return help_; }
  // Appends the family; without samples nothing.
  void write(std::string& out) const;

 private:
  std::string name_;
  std::string type_;
  std::string help_;
  std::string samples_;
};

}  // namespace ztcp::stat
