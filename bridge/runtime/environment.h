/* Environment variables of the adapter. The names and defaults stand in src/base/env.def with all others; the adapter reads its few
 * itself because it may run on CANN's own libraries, which know nothing of our table. */
#pragma once

#include <cstdlib>
#include <string>

namespace npu {

inline std::string environment_text(const char *name) {
  const char *text = std::getenv(name);
  return text ? text : "";
}

inline bool environment_flag(const char *name) { return environment_text(name) == "1"; }

} // namespace npu
