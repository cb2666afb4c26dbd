// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The interface of every kind of resource. A resource is a wanted state of one thing of the
// machine: a file with this text, a NIC with that driver. Its kind checks whether it holds, reads
// the state before, applies and reverts it, and stores it in the journal. A new kind is a header, a
// source and a line in kinds.h.
#pragma once

#include <concepts>
#include <set>
#include <string>

#include "config/problem.h"
#include "core/result.h"
#include "tools/ztcp_setup/host/host.h"
#include "tools/ztcp_setup/host/place_file.h"
#include "tools/ztcp_setup/resources/fields.h"

namespace ztcp::setup {

template <class T>
using Read = Result<T, config::Problem>;

struct Reverted {
  config::Problems faults;  // Things that could not be restored, with the command.
  config::Problems notes;   // Further information for the operator.
};
Reverted reverted(const Done& done);

// A change from one state to another, and the equivalent shell command.
struct Preview {
  std::string what;      // The resource's description.
  std::string have;      // "virtio-pci"; a file's text, empty if it does not exist.
  std::string want;      // "vfio-pci"
  std::string command;   // Reads a file's text from standard input.
  bool is_text = false;  // `have` and `want` are lines of a file.
};

// Effects of other resources of the same run: a driver may not exist before them.
struct Others {
  bool load_module = false;     // An earlier one loads it.
  std::set<std::string> taken;  // PCI functions that all of them give another driver.
};

// `What` is a struct with the wanted state; What::Before is the state that it replaces.
template <class What>
concept Kind = requires(What& what, const What& wanted, Host& host, const Others& others,
                        config::Problems& problems, typename What::Before& before, Fields& fields) {
  // The kind's name in the journal, and the resource's identity: a path, a PCI address.
  { What::kKind } -> std::convertible_to<const char*>;
  { wanted.id() } -> std::same_as<std::string>;
  // Whether a reboot loses it, so that it is applied again.
  { What::kLostAtBoot } -> std::convertible_to<bool>;
  // Finds its faults, before anything is changed.
  {wanted.check(host, others, problems)};
  // Whether the state exists already. Then nothing is changed.
  { wanted.holds(host) } -> std::same_as<bool>;
  // Reads the present state. Called when it does not hold.
  { wanted.before(host) } -> std::same_as<Read<typename What::Before>>;
  { wanted.preview(host) } -> std::same_as<Preview>;
  // Changes the machine, and verifies the result.
  { wanted.apply(host, before) } -> std::same_as<Done>;
  // Restores the state before. May be called when it is restored, or partly.
  { wanted.revert(host, std::as_const(before)) } -> std::same_as<Reverted>;
  // For the journal.
  {what.fields(fields)};
  {before.fields(fields)};
};
// Optional members. Without one the default applies:
//   void tell(Others&) const            its effects on others; default: none
//   void note_ids(Host&)                remembers the numbers of its user and group
//   bool may_fall_short() const         the kernel may give less, and the run goes on
//   void hold_more(Before&) const       it holds now, and an earlier run applied it with less
//   bool replaces(const Before&) const  a newly read state replaces the journal's
//   std::optional<Problem> in_use(Host&) const  a process uses it, so nothing is reverted
//   std::optional<std::string> kept_as(Host&, const Before&) const  where keep_edited() saves to
//   std::string restored(const Before&) const  the result of revert(), for people
//   Reverted keep_edited(Host&, const Before&) const  called before revert(), and before another
//                                     text is applied: saves edits
//   kNeverHalf                          reverted at once when it fails, also at boot
//   kStays                              kept until undo, even when no longer wanted

}  // namespace ztcp::setup
