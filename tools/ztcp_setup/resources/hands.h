// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// How each kind of wish is judged, recorded, carried out and taken back. grant.h and take_back.h
// decide when, and keep the journal.
//
//   check      what speaks against the wish, before anything is changed
//   holds      whether the machine is as wished already
//   record     the state that carry_out() would change
//   carry_out  changes the machine and looks at the result itself
//   restore    brings the recorded state back, as far as it is not back already
#pragma once

#include <string>

#include "config/problem.h"
#include "tools/ztcp_setup/host/host.h"
#include "tools/ztcp_setup/host/place_file.h"
#include "tools/ztcp_setup/resources/wish.h"
#include "tools/ztcp_setup/run/journal.h"

namespace ztcp::setup {

template <class T>
using Read = tl::expected<T, config::Problem>;

struct Restored {
  config::Problems faults;  // What could not be restored, and the command that does it.
  config::Problems notes;   // What else the operator should know.
};

// Wishes granted before the one that is checked: a value may appear with its module.
struct Earlier {
  const Wishes* wishes;
  std::size_t count;
};
bool has_module(const Earlier& earlier);

void check(Host& host, const wish::File& wish, const Earlier& earlier, config::Problems& problems);
bool holds(Host& host, const wish::File& wish);
Read<before::File> record(Host& host, const wish::File& wish);
Done carry_out(Host& host, const wish::File& wish, before::File& before);
Restored restore(Host& host, const wish::File& wish, const before::File& before);
// A file that somebody has changed since set-up wrote it is renamed, not lost.
Restored keep_edited(Host& host, const wish::File& wish, const before::File& before);

void check(Host& host, const wish::Folder& wish, const Earlier& earlier,
           config::Problems& problems);
bool holds(Host& host, const wish::Folder& wish);
Read<before::Folder> record(Host& host, const wish::Folder& wish);
Done carry_out(Host& host, const wish::Folder& wish, before::Folder& before);
Restored restore(Host& host, const wish::Folder& wish, const before::Folder& before);

void check(Host& host, const wish::Value& wish, const Earlier& earlier, config::Problems& problems);
bool holds(Host& host, const wish::Value& wish);
Read<before::Value> record(Host& host, const wish::Value& wish);
Done carry_out(Host& host, const wish::Value& wish, before::Value& before);
Restored restore(Host& host, const wish::Value& wish, const before::Value& before);

void check(Host& host, const wish::Module& wish, const Earlier& earlier,
           config::Problems& problems);
bool holds(Host& host, const wish::Module& wish);
Read<before::Module> record(Host& host, const wish::Module& wish);
Done carry_out(Host& host, const wish::Module& wish, before::Module& before);
Restored restore(Host& host, const wish::Module& wish, const before::Module& before);

void check(Host& host, const wish::Mount& wish, const Earlier& earlier, config::Problems& problems);
bool holds(Host& host, const wish::Mount& wish);
Read<before::Mount> record(Host& host, const wish::Mount& wish);
Done carry_out(Host& host, const wish::Mount& wish, before::Mount& before);
Restored restore(Host& host, const wish::Mount& wish, const before::Mount& before);

void check(Host& host, const wish::Driver& wish, const Earlier& earlier,
           config::Problems& problems);
bool holds(Host& host, const wish::Driver& wish);
Read<before::Driver> record(Host& host, const wish::Driver& wish);
Done carry_out(Host& host, const wish::Driver& wish, before::Driver& before);
Restored restore(Host& host, const wish::Driver& wish, const before::Driver& before);
// Why the NIC must stay where it is: a process uses it. Absent: nobody does.
std::optional<config::Problem> held(Host& host, const std::string& pci);
// Whether the function is the NIC that was recorded. PCI addresses move when cards are added.
std::optional<config::Problem> another_device(Host& host, const wish::Driver& wish,
                                              const before::Driver& before);
// Whether the network of the NIC is worth recording again: it has addresses.
bool has_addresses(const before::Driver& before);

void check(Host& host, const wish::Access& wish, const Earlier& earlier,
           config::Problems& problems);
bool holds(Host& host, const wish::Access& wish);
Read<before::Access> record(Host& host, const wish::Access& wish);
Done carry_out(Host& host, const wish::Access& wish, before::Access& before);
Restored restore(Host& host, const wish::Access& wish, const before::Access& before);

void check(Host& host, const wish::Unit& wish, const Earlier& earlier, config::Problems& problems);
bool holds(Host& host, const wish::Unit& wish);
Read<before::Unit> record(Host& host, const wish::Unit& wish);
Done carry_out(Host& host, const wish::Unit& wish, before::Unit& before);
Restored restore(Host& host, const wish::Unit& wish, const before::Unit& before);

void check(Host& host, const wish::BootArguments& wish, const Earlier& earlier,
           config::Problems& problems);
bool holds(Host& host, const wish::BootArguments& wish);
Read<before::BootArguments> record(Host& host, const wish::BootArguments& wish);
Done carry_out(Host& host, const wish::BootArguments& wish, before::BootArguments& before);
Restored restore(Host& host, const wish::BootArguments& wish, const before::BootArguments& before);

void check(Host& host, const wish::Notice& wish, const Earlier& earlier,
           config::Problems& problems);
Done give(Host& host, const wish::Notice& wish);

}  // namespace ztcp::setup
