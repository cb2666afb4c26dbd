// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_perf/probe/table.h"

#include <algorithm>
#include <functional>
#include <optional>

#include <fmt/format.h>

namespace ztcp::perf::probe {
namespace {

// The pairs of one rail by sender and receiver.
class Matrix {
 public:
  Matrix(const Results& results, std::size_t rail)
      : hosts_(results.hosts.size()), pairs_(hosts_ * hosts_) {
    for (const PairResult& pair : results.pairs) {
      if (pair.rail != rail) continue;
      pairs_[pair.a * hosts_ + pair.b] = pairs_[pair.b * hosts_ + pair.a] = &pair;
    }
  }
  // Null: not measured.
  const PairResult* at(std::size_t from, std::size_t to) const {
    return pairs_[from * hosts_ + to];
  }

 private:
  std::size_t hosts_;
  std::vector<const PairResult*> pairs_;
};

const Direction& way(const PairResult& pair, std::size_t from) {
  return from == pair.a ? pair.forward : pair.backward;
}

std::string rail_title(const Results& results, std::size_t rail) {
  for (const Host& host : results.hosts)
    if (rail < host.facts.nics.size())
      return fmt::format("rail {} ({})", rail, host.facts.nics[rail].name);
  return fmt::format("rail {}", rail);
}

// The end of a name that does not fit tells hosts apart.
std::string fit(const std::string& name, std::size_t width) {
  return name.size() <= width ? name : name.substr(name.size() - width);
}

class Renderer {
 public:
  Renderer(const Results& results, const Limits& limits)
      : results_(results), limits_(limits), references_(references_of(results)) {}

  std::string run(const std::vector<Finding>& findings) {
    head();
    for (std::size_t rail = 0; rail < results_.rails; ++rail) {
      const Matrix matrix(results_, rail);
      if (results_.hosts.size() > kMostHostsInNumbers) {
        letters(matrix, rail);
      } else {
        numbers(matrix, rail);
      }
    }
    for (const Finding& finding : findings)
      line("{} {}", finding.is_fault ? "BAD " : "note", finding.text);
    line("verdict: {}", sentence(findings));
    return std::move(text_);
  }

 private:
  using Cell = std::function<std::string(const PairResult&, std::size_t from)>;

  template <class... Args>
  void line(fmt::format_string<Args...> format, Args&&... args) {
    text_ += fmt::format(format, std::forward<Args>(args)...) + "\n";
  }

  void head() {
    line("# {} hosts, {} rail{}, {} rounds in {:.1f} s", results_.hosts.size(), results_.rails,
         results_.rails == 1 ? "" : "s", results_.rounds, results_.took_s);
    const auto measured = std::ranges::find_if(results_.hosts, &Host::has_facts);
    if (measured == results_.hosts.end()) return;
    const HostFacts& facts = measured->facts;
    line("# {}: version {}, plugin {}, config {}, kernel {}, {} CPUs", measured->name,
         facts.version, facts.plugin, facts.config, facts.kernel, facts.cpus);
    for (std::size_t rail = 0; rail < results_.rails; ++rail)
      line("# {}: median {:.3g} Gbit/s one way, {:.3g} both ways at once, {:.3g} us",
           rail_title(results_, rail), references_.gbit_per_s[rail],
           references_.both_gbit_per_s[rail], references_.latency_us[rail]);
  }

  void numbers(const Matrix& matrix, std::size_t rail) {
    grid(matrix, fmt::format("{}: Gbit/s from row to column", rail_title(results_, rail)),
         [&](const PairResult& pair, std::size_t from) {
           const double value = way(pair, from).gbit_per_s;
           return fmt::format("{:.3g}{}", value, is_slow(value, rail) ? "*" : " ");
         });
    grid(matrix, fmt::format("{}: Gbit/s, both ways at once", rail_title(results_, rail)),
         [&](const PairResult& pair, std::size_t) {
           const bool is_bad =
               pair.both_gbit_per_s < limits_.slow * references_.both_gbit_per_s[rail];
           return fmt::format("{:.3g}{}", pair.both_gbit_per_s, is_bad ? "*" : " ");
         });
    grid(matrix, fmt::format("{}: us, one way, median", rail_title(results_, rail)),
         [&](const PairResult& pair, std::size_t) {
           return fmt::format("{:.3g}{}", pair.latency.p50_us,
                              is_late(pair.latency.p50_us, rail) ? "*" : " ");
         });
    if (!tells_resent(rail)) {
      line("{}: packets sent again: this transport does not tell", rail_title(results_, rail));
      return;
    }
    grid(matrix, fmt::format("{}: % sent again, from row to column", rail_title(results_, rail)),
         [&](const PairResult& pair, std::size_t from) {
           const auto& resent = way(pair, from).resent;
           if (!resent) return std::string("? ");
           return fmt::format("{:.2g}{}", *resent * 100, *resent > limits_.resent ? "*" : " ");
         });
  }

  void grid(const Matrix& matrix, const std::string& title, const Cell& cell) {
    constexpr std::size_t kWidth = 8;
    line("{}", title);
    std::string row = std::string(kWidth + 4, ' ');
    for (const Host& host : results_.hosts) row += fmt::format("{:>8} ", fit(host.name, kWidth));
    line("{}", row);
    for (std::size_t from = 0; from < results_.hosts.size(); ++from) {
      row = fmt::format("{:<12}", fit(results_.hosts[from].name, kWidth + 3));
      for (std::size_t to = 0; to < results_.hosts.size(); ++to) {
        const PairResult* pair = matrix.at(from, to);
        std::string text = "- ";
        if (pair != nullptr) text = pair->failure.empty() ? cell(*pair, from) : "failed*";
        row += fmt::format("{:>9}", text);
      }
      line("{}", row);
    }
  }

  void letters(const Matrix& matrix, std::size_t rail) {
    line("{}: from row to column: . good, S slow, L late, % sent again, X failed, - not measured",
         rail_title(results_, rail));
    std::size_t width = 0;
    for (const Host& host : results_.hosts) width = std::max(width, host.name.size());
    width = std::min<std::size_t>(width, 20);
    for (std::size_t from = 0; from < results_.hosts.size(); ++from) {
      std::string row = fmt::format("{:<{}} ", fit(results_.hosts[from].name, width), width);
      for (std::size_t to = 0; to < results_.hosts.size(); ++to)
        row += from == to ? ' ' : letter(matrix.at(from, to), from, rail);
      line("{}", row);
    }
  }

  char letter(const PairResult* pair, std::size_t from, std::size_t rail) const {
    if (pair == nullptr) return '-';
    if (!pair->failure.empty()) return 'X';
    const Direction& direction = way(*pair, from);
    if (direction.resent.value_or(0) > limits_.resent) return '%';
    if (is_slow(direction.gbit_per_s, rail)) return 'S';
    return is_late(pair->latency.p50_us, rail) ? 'L' : '.';
  }

  bool tells_resent(std::size_t rail) const {
    return std::ranges::any_of(results_.pairs, [rail](const PairResult& pair) {
      return pair.rail == rail && (pair.forward.resent || pair.backward.resent);
    });
  }
  bool is_slow(double gbit_per_s, std::size_t rail) const {
    return is_slow_in(limits_, gbit_per_s, references_.gbit_per_s[rail]);
  }
  bool is_late(double us, std::size_t rail) const {
    return is_late_in(limits_, us, references_.latency_us[rail]);
  }

  const Results& results_;
  const Limits& limits_;
  const References references_;
  std::string text_;
};

}  // namespace

std::string render(const Results& results, const Limits& limits,
                   const std::vector<Finding>& findings) {
  return Renderer(results, limits).run(findings);
}

}  // namespace ztcp::perf::probe
