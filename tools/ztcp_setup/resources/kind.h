// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// What every kind of resource answers. A resource is a state of one thing of the machine that
// set-up wants: a file with this text, a NIC with that driver. Its kind knows all about it: whether
// it holds, what was there before, how to apply and to revert it, and how the journal keeps it. A
// new kind is a header, a source and a line in kinds.h.
#pragma once

#include <concepts>
#include <set>
#include <string>

#include <tl/expected.hpp>

#include "config/problem.h"
#include "tools/ztcp_setup/host/host.h"
#include "tools/ztcp_setup/host/place_file.h"
#include "tools/ztcp_setup/resources/fields.h"

namespace ztcp::setup {

template <class T>
using Read = tl::expected<T, config::Problem>;

struct Reverted {
  config::Problems faults;  // What could not be put back, and the command that does it.
  config::Problems notes;   // What else the operator should know.
};
Reverted reverted(const Done& done);

// What would change, from what to what, and the shell line that does the same.
struct Preview {
  std::string what;      // The resource's own line.
  std::string have;      // "virtio-pci"; a file's text, empty where there is none.
  std::string want;      // "vfio-pci"
  std::string command;   // A file's text comes on its standard input.
  bool is_text = false;  // `have` and `want` are lines of a file.
};

// What the other resources of the same run will bring: a driver may not be there before them.
struct Others {
  bool load_module = false;     // One that is applied earlier.
  std::set<std::string> taken;  // PCI functions that get another driver, all of them.
};

// `What` is a struct of what is wanted; What::Before is the state that it replaces.
template <class What>
concept Kind = requires(What& what, const What& wanted, Host& host, const Others& others,
                        config::Problems& problems, typename What::Before& before, Fields& fields) {
  // Its name in the journal, and which of its kind it is: a path, a PCI address.
  { What::kKind } -> std::convertible_to<const char*>;
  { wanted.id() } -> std::same_as<std::string>;
  // Whether a boot undoes it, so that it is applied again then.
  { What::kLostAtBoot } -> std::convertible_to<bool>;
  // Finds what speaks against it, before anything is changed.
  {wanted.check(host, others, problems)};
  // Whether the machine is so already. Nothing is changed then.
  { wanted.holds(host) } -> std::same_as<bool>;
  // What there is. Asked when it does not hold.
  { wanted.before(host) } -> std::same_as<Read<typename What::Before>>;
  { wanted.preview(host) } -> std::same_as<Preview>;
  // Changes the machine, and looks whether it is so then.
  { wanted.apply(host, before) } -> std::same_as<Done>;
  // Brings back what was there before. May be called when it is there, or half there.
  { wanted.revert(host, std::as_const(before)) } -> std::same_as<Reverted>;
  // For the journal.
  {what.fields(fields)};
  {before.fields(fields)};
};
// Some kinds have one of these beside. Whoever lacks it does the usual:
//   void tell(Others&) const            what others may count on; the usual: nothing
//   void note_ids(Host&)                remembers the numbers of its user and group
//   bool may_fall_short() const         the kernel may give less, and the run goes on
//   void hold_more(Before&) const       it holds, and an earlier run applied it with less
//   bool replaces(const Before&) const  a state that was read anew is kept, not the journal's
//   std::optional<Problem> in_use(Host&) const  a process has it, so nothing is reverted
//   std::optional<std::string> kept_as(Host&, const Before&) const  where keep_edited() saves to
//   std::string restored(const Before&) const  what revert() makes of it, for people
//   Reverted keep_edited(Host&, const Before&) const  before revert(), and before another text is
//                                       applied: saves what people changed
//   kNeverHalf                          reverted at once when it fails, at boot as well
//   kStays                              stays when it is wanted no longer, until the undo

}  // namespace ztcp::setup
