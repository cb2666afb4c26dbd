// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include <algorithm>
#include <concepts>
#include <string_view>
#include <type_traits>

#include <fmt/format.h>

#include "config/file/fields.h"
#include "config/file/load.h"
#include "config/schema.h"

namespace ztcp::config {
namespace {

std::string in_quotes(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      out += fmt::format("\\u{:04X}", static_cast<unsigned>(c));
    } else {
      out += c;
    }
  }
  return out + "\"";
}

std::string literal(const std::string& text) { return in_quotes(text); }
std::string literal(bool flag) { return flag ? "true" : "false"; }
template <std::integral Number>
requires(!std::same_as<Number, bool>) std::string literal(Number number) {
  return fmt::format("{}", number);
}
std::string literal(const std::vector<std::uint32_t>& numbers) {
  return fmt::format("[{}]", fmt::join(numbers, ", "));
}
std::string literal(const MacAddress& mac) { return in_quotes(to_string(mac)); }
std::string literal(const IpPrefix& address) { return in_quotes(address_text(address)); }
std::string literal(const std::optional<IpAddress>& gateway) {
  return in_quotes(gateway ? gateway_text(*gateway) : std::string());
}
template <class Enum>
requires std::is_enum_v<Enum> std::string literal(Enum value) { return in_quotes(name_of(value)); }

void add_comment(std::string& out, std::string_view text) {
  constexpr std::size_t kWidth = 98;
  while (!text.empty()) {
    std::size_t end = text.size();
    if (end > kWidth) {
      end = text.rfind(' ', kWidth);
      if (end == std::string_view::npos) end = text.find(' ');
    }
    out += fmt::format("# {}\n", text.substr(0, end));
    text.remove_prefix(std::min(text.size(), end == std::string_view::npos ? end : end + 1));
  }
}

// Values by which a host was set up must not change with a later release's defaults: they are
// written even when they equal the default.
bool is_decided(const Key& key, bool on_pci) {
  if (key.section.empty() && key.name == "schema") return true;
  if (key.section == "host" && key.name == "class") return true;
  return on_pci && (key.section == "hugepages" || (key.section.empty() && key.name == "run_dir"));
}

// "0 to 4094; default: 0", "an IPv4 address; default: """
std::string facts(const Key& key) {
  std::string text;
  if (!key.form.empty())
    text = fmt::format("{}; ", key.form);
  else if (key.type == Type::kInteger && key.min != key.max)
    text = fmt::format("{} to {}{}{}; ", key.min, key.max, key.unit.empty() ? "" : " ", key.unit);
  if (key.default_text.empty() || !key.required_for.empty()) return text + "required";
  return text + fmt::format("default: {}", key.default_text);
}

class SectionWriter {
 public:
  // `explained`: writes the meaning above each key. `driver`: the NIC's; for the whole file "pci"
  // where it has a NIC on PCI.
  SectionWriter(std::string& out, std::string_view section, bool explained,
                std::string_view driver = {})
      : out_(out), section_(section), explained_(explained), driver_(driver) {}

  template <class Member>
  void operator()(std::string_view name, const Member& member) {
    const Key& key = *find_key(section_, name);
    const std::string value = literal_of(key, member);
    if (is_left_out(key, value)) return;
    if (explained_) add_comment(out_, fmt::format("{} ({})", key.meaning, facts(key)));
    out_ += fmt::format("{}{} = {}\n", is_commented_out(key, value) ? "#" : "", name, value);
    if (explained_) out_ += '\n';
  }

 private:
  template <class Member>
  static std::string literal_of(const Key& key, const Member& member) {
    const std::string value = literal(member);
    return key.type == Type::kInteger && !key.choices.empty() && value == "0"
               ? in_quotes(key.choices)
               : value;
  }
  // A NIC has only keys that it needs: keys of other drivers would be faults.
  bool is_left_out(const Key& key, std::string_view value) const {
    return section_ == "nic" && (value == key.default_text || !is_for(key, driver_));
  }

  // Shows a default without setting it: a later release may have a better one.
  bool is_commented_out(const Key& key, std::string_view value) const {
    return section_ != "nic" && value == key.default_text && !is_decided(key, driver_ == "pci");
  }

  std::string& out_;
  std::string_view section_;
  bool explained_;
  std::string_view driver_;
};

std::string_view meaning_of(std::string_view section) {
  for (const Section& known : sections())
    if (known.name == section) return known.meaning;
  return {};
}

}  // namespace

std::string to_toml(const Fabric& fabric) {
  std::string out;
  const bool on_pci = std::any_of(fabric.nics.begin(), fabric.nics.end(),
                                  [](const Nic& nic) { return nic.driver == NicDriver::kPci; });
  const std::string_view driver = on_pci ? name_of(NicDriver::kPci) : std::string_view();
  add_comment(out,
              "Written by ztcp_setup. Every key is described in ztcp.conf(5). A line that begins "
              "with # and has no blank behind it is a default: remove the # to set another value.");
  out += '\n';
  visit_top(fabric, SectionWriter(out, "", true, driver));
  for_each_section(fabric, [&](std::string_view name, auto&& walk) {
    add_comment(out, meaning_of(name));
    out += fmt::format("[{}]\n", name);
    walk(SectionWriter(out, name, true, driver));
  });
  add_comment(out, meaning_of("nic"));
  // Explained once, above the first NIC.
  bool first = true;
  for (const Nic& nic : fabric.nics) {
    out += "[[nic]]\n";
    visit_nic(nic, SectionWriter(out, "nic", first, name_of(nic.driver)));
    if (!first) out += '\n';
    first = false;
  }
  return out;
}

}  // namespace ztcp::config
