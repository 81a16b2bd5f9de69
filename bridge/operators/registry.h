/* Registration of the wrappers. It happens when CANN's libraries are known, not when this library is loaded: an operator that the loaded
 * CANN lacks isn't registered and so runs through the counted CPU fallback. */
#pragma once

namespace torch {
class Library;
}

namespace npu {

using RegisterFunction = void (*)(torch::Library &);

/* A file-level `const Registrar` adds its function to the list. */
class Registrar {
public:
  explicit Registrar(RegisterFunction function);

private:
  RegisterFunction function_;
  const Registrar *next_;
  friend void register_operators();
};

/* Keeps the exception being handled for raise() (operand.h), which the failing call ends in. */
void keep_exception() noexcept;

/* Does the loaded CANN serve npu_<function>? */
bool available(const char *function);

/* Registers everything with torch's dispatcher; call once, after cann_load. Later calls do nothing. */
void register_operators();

} // namespace npu
