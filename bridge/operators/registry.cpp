/* See registry.h. */
#include "bridge/operators/registry.h"

#include <torch/library.h>

#include "op_plugin/op_plugin.h"

namespace npu {

static const Registrar *&first() {
  static const Registrar *head = nullptr; // filled while libraries load, on one thread
  return head;
}

Registrar::Registrar(RegisterFunction function) : function_(function), next_(first()) { first() = this; }

bool available(const char *function) { return npu_available(function); }

void register_operators() {
  static torch::Library library(torch::Library::IMPL, "aten", c10::DispatchKey::PrivateUse1, __FILE__, __LINE__);
  static const bool done = [] {
    for (const Registrar *registrar = first(); registrar; registrar = registrar->next_)
      registrar->function_(library);
    return true;
  }();
  (void)done;
}

} // namespace npu
