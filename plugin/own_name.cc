// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Lets dlopen("libnccl-net.so") find this library once it is loaded by its path: NCCL 2.28 and 2.29
// forget the path of NCCL_NET_PLUGIN with the last communicator, and a Python package loads the
// file before NCCL does. A SONAME would do that too, but ldconfig gives each lib*.so* a link of its
// SONAME's name: a plugin that was renamed to switch it off would be on again.
//
// Thread: the one that loads the library.
#include <dlfcn.h>

namespace {

// The loader looks in this library's folder first (RPATH, plugin/meson.build), and notes the name
// for the file that it finds loaded. It loads nothing.
[[gnu::constructor]] void note_own_name() {
  if (void* const self = dlopen("libnccl-net.so", RTLD_LAZY | RTLD_NOLOAD)) dlclose(self);
}

}  // namespace
