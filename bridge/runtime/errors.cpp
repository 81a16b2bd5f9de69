/* CANN's codes as exceptions, in torch_npu's words. */
#include <sys/types.h>
#include <unistd.h>

#include <cstdlib>
#include <ctime>

#include "bridge/runtime/environment.h"
#include "bridge/runtime/runtime.h"

namespace npu {

std::string error_line(const char *code_and_kind) {
  if (environment_flag("TORCH_NPU_COMPACT_ERROR_OUTPUT"))
    return "";
  char when[32];
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  localtime_r(&now, &local);
  std::strftime(when, sizeof when, "%Y-%m-%d-%H:%M:%S", &local);
  const std::string rank = environment_text("RANK");
  return std::string("\n[ERROR] ") + when + " (PID:" + std::to_string(getpid()) + ", Device:" + std::to_string(current_device()) +
         ", RankID:" + (rank.empty() ? "-1" : rank) + ") " + code_and_kind;
}

void throw_status(int code, const char *call) {
  const char *text = cann.aclGetRecentErrMsg ? cann.aclGetRecentErrMsg() : nullptr;
  const std::string detail = text ? text : "no further detail";
  const bool is_operator = std::string(call).rfind("aclnn", 0) == 0;
  if (detail.find("'spawn' start method") != std::string::npos)
    TORCH_CHECK(false,
                "Cannot re-initialize NPU in forked subprocess. To use NPU with multiprocessing, you must use the 'spawn' "
                "start method",
                error_line("ERR00003 PTA invalid value"));
  if (code == ACL_ERROR_RT_MEMORY_ALLOCATION)
    TORCH_CHECK_WITH(OutOfMemoryError, false, "NPU out of memory: call ", call, " failed, error code is ", code,
                     ", detail: ", detail);
  if (is_operator)
    TORCH_CHECK(false, "call ", call, " failed, error code is ", code, ", detail: ", detail,
                error_line("ERR01100 OPS call acl api failed"));
  TORCH_CHECK(false, "NPU function error: ", call, ", error code is ", code, ": ", detail,
              error_line("ERR00100 PTA call acl api failed"));
}

} // namespace npu
