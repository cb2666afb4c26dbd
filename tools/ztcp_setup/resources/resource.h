// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// A wanted state of the machine, of any kind: the interface between the plan, which decides, and
// the run, which applies, journals and reverts. It describes the wanted state, not the steps; the
// state before is read when it is applied, and goes into the journal first. A resource that holds
// already changes nothing.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "tools/ztcp_setup/resources/kinds.h"

namespace ztcp::setup {

struct Resource {
  std::string why;  // One line for people: "0000:1b:00.0 (ztcp0): virtio-pci -> vfio-pci".
  Kinds::What what;
};
// Applied in order, reverted in reverse. Always the whole list, also those that hold already:
// resources of an earlier set-up that are missing from it are reverted.
using Resources = std::vector<Resource>;

// The state before a resource was applied; of the same kind as the resource.
using Before = Kinds::Before;

// The resource's identity, independent of the wanted state: "driver 0000:3b:00.0".
std::string key_of(const Resource& resource);
bool is_notice(const Resource& resource);

// All faults, found before anything is changed.
config::Problems faults_of(Host& host, const Resources& resources);
bool holds(Host& host, const Resource& resource);
Read<Before> read_before(Host& host, const Resource& resource);
Preview preview(Host& host, const Resource& resource);
Done apply(Host& host, const Resource& resource, Before& before);
Reverted revert(Host& host, const Resource& resource, const Before& before);
// The result of revert(), for people: "virtio-pci, with eth1".
std::string restored(const Resource& resource, const Before& before);

// Optional members of kinds; see kind.h.
void note_ids(Host& host, Resource& resource);
bool lost_at_boot(const Resource& resource);
bool stays(const Resource& resource);
bool may_fall_short(const Resource& resource);
bool is_never_half(const Resource& resource);
void hold_more(const Resource& resource, Before& before);
// Whether a newly read state can replace that of the journal, and whether this one does.
bool may_be_replaced(const Resource& resource);
bool replaces(const Resource& resource, const Before& fresh);
std::optional<config::Problem> in_use(Host& host, const Resource& resource);
bool keeps_edits(const Resource& resource);
// The path that edits are saved to when this is applied anew or reverted; absent: no edits.
std::optional<std::string> kept_as(Host& host, const Resource& resource, const Before& before);
Reverted keep_edited(Host& host, const Resource& resource, const Before& before);

// For the journal: the name of the kind, and the fields.
const char* kind_of(const Resource& resource);
void fields_of(Resource& resource, Fields& fields);
void fields_of(Before& before, Fields& fields);
// An empty resource of the kind, and an empty state of it. Absent: unknown kind.
std::optional<Kinds::What> what_of_kind(const std::string& kind);
Before before_of_kind(const Resource& resource);

}  // namespace ztcp::setup
