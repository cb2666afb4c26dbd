// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_setup/resources/interface_fields.h"

namespace ztcp::setup {
namespace {

void item_fields(Fields& fields, NetworkItem& item) {
  fields.bytes("command", item.command);
  fields.text("message", item.message);
  fields.optional_time("expires_unix_s", item.expires_unix_s);
}

void group_fields(Fields& fields, SettingGroup& group) {
  fields.text("group", group.name);
  fields.number_pairs("values", group.values);
}

}  // namespace

void interface_fields(Fields& fields, InterfaceState& state) {
  fields.bytes("name", state.name);
  fields.text("mac", state.mac);
  fields.text("permanent_mac", state.permanent_mac);
  fields.number("mtu_bytes", state.mtu_bytes);
  fields.number("queue_length", state.queue_length);
  fields.bytes("alias", state.alias);
  fields.bytes("master", state.master);
  fields.flag("up", state.up);
  fields.text("kind", state.kind);
  fields.text("info", state.info);
  fields.records("addresses", state.addresses, item_fields);
  fields.records("neighbours", state.neighbours, item_fields);
  fields.records("routes", state.routes, item_fields);
  fields.byte_pairs("sysctls", state.sysctls);
  fields.records("settings", state.settings, group_fields, Fields::Since::kNewer);
  fields.records("children", state.children, interface_fields);
}

}  // namespace ztcp::setup
