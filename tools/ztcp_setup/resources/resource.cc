// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_setup/resources/resource.h"

#include <type_traits>

#include <fmt/format.h>

namespace ztcp::setup {
namespace {

template <class What>
using BeforeOf = typename std::decay_t<What>::Before;

// The journal pairs each resource with a state of its own kind.
template <class What>
const BeforeOf<What>& of_kind(const What&, const Before& before) {
  return std::get<BeforeOf<What>>(before);
}
template <class What>
BeforeOf<What>& of_kind(const What&, Before& before) {
  return std::get<BeforeOf<What>>(before);
}

template <class Question>
auto ask(const Resource& resource, Question&& question) {
  return std::visit(std::forward<Question>(question), resource.what);
}

}  // namespace

Reverted reverted(const Done& done) {
  Reverted reverted;
  if (!done) reverted.faults.push_back(done.error());
  return reverted;
}

std::string key_of(const Resource& resource) {
  return ask(resource,
             [](const auto& what) { return fmt::format("{} {}", what.kKind, what.id()); });
}

bool is_notice(const Resource& resource) {
  return std::holds_alternative<resource::Notice>(resource.what);
}

config::Problems faults_of(Host& host, const Resources& resources) {
  const auto tell = [](const Resource& resource, Others& others) {
    ask(resource, [&](const auto& what) {
      if constexpr (requires { what.tell(others); }) what.tell(others);
    });
  };
  Others all;
  for (const Resource& resource : resources) tell(resource, all);
  Others others{false, all.taken};
  config::Problems problems;
  for (const Resource& resource : resources) {
    ask(resource, [&](const auto& what) { what.check(host, others, problems); });
    tell(resource, others);
  }
  return problems;
}

bool holds(Host& host, const Resource& resource) {
  return ask(resource, [&](const auto& what) { return what.holds(host); });
}

Read<Before> read_before(Host& host, const Resource& resource) {
  return ask(resource,
             [&](const auto& what) -> Read<Before> { return Before(ZTCP_TRY(what.before(host))); });
}

Preview preview(Host& host, const Resource& resource) {
  Preview preview = ask(resource, [&](const auto& what) { return what.preview(host); });
  preview.what = resource.why;
  return preview;
}

Done apply(Host& host, const Resource& resource, Before& before) {
  return ask(resource, [&](const auto& what) { return what.apply(host, of_kind(what, before)); });
}

Reverted revert(Host& host, const Resource& resource, const Before& before) {
  return ask(resource, [&](const auto& what) { return what.revert(host, of_kind(what, before)); });
}

std::string restored(const Resource& resource, const Before& before) {
  return ask(resource, [&](const auto& what) -> std::string {
    if constexpr (requires { what.restored(of_kind(what, before)); })
      return what.restored(of_kind(what, before));
    return "as before set-up";
  });
}

void note_ids(Host& host, Resource& resource) {
  std::visit(
      [&](auto& what) {
        if constexpr (requires { what.note_ids(host); }) what.note_ids(host);
      },
      resource.what);
}

bool lost_at_boot(const Resource& resource) {
  return ask(resource, [](const auto& what) { return what.kLostAtBoot; });
}

bool stays(const Resource& resource) {
  return ask(resource, [](const auto& what) {
    return requires { what.kStays; };
  });
}

bool may_fall_short(const Resource& resource) {
  return ask(resource, [](const auto& what) {
    if constexpr (requires { what.may_fall_short(); }) return what.may_fall_short();
    return false;
  });
}

bool is_never_half(const Resource& resource) {
  return ask(resource, [](const auto& what) {
    return requires { what.kNeverHalf; };
  });
}

void hold_more(const Resource& resource, Before& before) {
  ask(resource, [&](const auto& what) {
    if constexpr (requires { what.hold_more(of_kind(what, before)); })
      what.hold_more(of_kind(what, before));
  });
}

bool may_be_replaced(const Resource& resource) {
  return ask(resource, [](const auto& what) {
    return requires(const BeforeOf<decltype(what)>& fresh) { what.replaces(fresh); };
  });
}

bool replaces(const Resource& resource, const Before& fresh) {
  return ask(resource, [&](const auto& what) {
    if constexpr (requires { what.replaces(of_kind(what, fresh)); })
      return what.replaces(of_kind(what, fresh));
    return false;
  });
}

std::optional<config::Problem> in_use(Host& host, const Resource& resource) {
  return ask(resource, [&](const auto& what) -> std::optional<config::Problem> {
    if constexpr (requires { what.in_use(host); }) return what.in_use(host);
    return std::nullopt;
  });
}

bool keeps_edits(const Resource& resource) {
  return ask(resource, [](const auto& what) {
    return requires(Host & host, const BeforeOf<decltype(what)>& before) {
      what.keep_edited(host, before);
    };
  });
}

std::optional<std::string> kept_as(Host& host, const Resource& resource, const Before& before) {
  return ask(resource, [&](const auto& what) -> std::optional<std::string> {
    if constexpr (requires { what.kept_as(host, of_kind(what, before)); })
      return what.kept_as(host, of_kind(what, before));
    return std::nullopt;
  });
}

Reverted keep_edited(Host& host, const Resource& resource, const Before& before) {
  return ask(resource, [&](const auto& what) -> Reverted {
    if constexpr (requires { what.keep_edited(host, of_kind(what, before)); })
      return what.keep_edited(host, of_kind(what, before));
    return {};
  });
}

const char* kind_of(const Resource& resource) {
  return ask(resource, [](const auto& what) { return what.kKind; });
}

void fields_of(Resource& resource, Fields& fields) {
  std::visit([&](auto& what) { what.fields(fields); }, resource.what);
}

void fields_of(Before& before, Fields& fields) {
  std::visit([&](auto& was) { was.fields(fields); }, before);
}

namespace {

template <class... Each>
std::optional<Kinds::What> find_kind(const std::string& kind, std::variant<Each...>*) {
  std::optional<Kinds::What> found;
  static_cast<void>(((kind == Each::kKind ? (found = Each{}, true) : false) || ...));
  return found;
}

}  // namespace

std::optional<Kinds::What> what_of_kind(const std::string& kind) {
  return find_kind(kind, static_cast<Kinds::What*>(nullptr));
}

Before before_of_kind(const Resource& resource) {
  return ask(resource, [](const auto& what) { return Before(BeforeOf<decltype(what)>{}); });
}

}  // namespace ztcp::setup
