/* See registry.h. */
#include "bridge/operators/registry.h"

#include <torch/library.h>

#include "bridge/operators/operand.h"

namespace npu {

static const Registrar *&first() {
  static const Registrar *head = nullptr; // filled while libraries load, on one thread
  return head;
}

Registrar::Registrar(RegisterFunction function) : function_(function), next_(first()) { first() = this; }

bool available(const char *function) { return npu_available(function); }

/* A workspace lives during one call of one thread: taken before phase 2, given back to the stream's order after it. */
static thread_local c10::DataPtr workspace;

static void *take_workspace(uint64_t bytes, aclrtStream) {
  try {
    workspace = allocate(bytes, current_device());
    return workspace.get();
  } catch (...) {
    keep_exception(); // no C++ exception may pass through C; raise() throws it
    return nullptr;
  }
}

static void give_workspace_back(void *, aclrtStream) { workspace.clear(); }

void register_operators() {
  static const npu_callbacks callbacks{take_workspace, give_workspace_back};
  npu_set_callbacks(&callbacks);
  static torch::Library library(torch::Library::IMPL, "aten", c10::DispatchKey::PrivateUse1, __FILE__, __LINE__);
  static const bool done = [] {
    for (const Registrar *registrar = first(); registrar; registrar = registrar->next_)
      registrar->function_(library);
    return true;
  }();
  (void)done;
}

} // namespace npu
