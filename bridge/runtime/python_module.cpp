/* torchtitan_npu._bridge: the few functions that the Python package needs, in CPython's C API (pybind11's headers would triple the
 * compile time). Invariant: no C++ exception leaves a function; each becomes the Python exception that torch would raise. */
#include <Python.h>

#include <ATen/core/CachingHostAllocator.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/util/Exception.h>
#include <torch/csrc/Generator.h>

#include "bridge/operators/registry.h"
#include "bridge/runtime/memory_history.h"
#include "bridge/runtime/runtime.h"

namespace npu {
namespace {

template <class Function> PyObject *guarded(Function function) noexcept {
  try {
    return function();
  } catch (const c10::OutOfMemoryError &error) {
    PyObject *torch = PyImport_ImportModule("torch");
    PyObject *type = torch ? PyObject_GetAttrString(torch, "OutOfMemoryError") : nullptr;
    PyErr_SetString(type ? type : PyExc_RuntimeError, error.what_without_backtrace());
    Py_XDECREF(type);
    Py_XDECREF(torch);
  } catch (const c10::Error &error) {
    PyErr_SetString(PyExc_RuntimeError, error.what_without_backtrace());
  } catch (const std::exception &error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  }
  return nullptr;
}

PyObject *none() { Py_RETURN_NONE; }

c10::DeviceAllocator *device_allocator() { return static_cast<c10::DeviceAllocator *>(allocator()); }

/* Runs `function` with the device that the only argument names: an int, -1 or absent = the current device. */
template <class Function> PyObject *with_device(PyObject *arguments, Function function) noexcept {
  long long index = -1;
  if (!PyArg_ParseTuple(arguments, "|L", &index))
    return nullptr;
  return guarded([&] { return function(resolve_index(index)); });
}

PyObject *load(PyObject *, PyObject *arguments) {
  const char *folder = nullptr;
  if (!PyArg_ParseTuple(arguments, "|z", &folder))
    return nullptr;
  return guarded([&] {
    TORCH_CHECK(cann_load(folder) == 0, cann_load_error());
    register_operators();
    return none();
  });
}

PyObject *init(PyObject *, PyObject *) {
  return guarded([] {
    ensure_initialized();
    use_device(current_device());
    return none();
  });
}

PyObject *initialized(PyObject *, PyObject *) { return PyBool_FromLong(is_initialized()); }
PyObject *bad_fork(PyObject *, PyObject *) { return PyBool_FromLong(in_bad_fork()); }
PyObject *count_devices(PyObject *, PyObject *) { return PyLong_FromLong(device_count()); }
PyObject *get_current_device(PyObject *, PyObject *) { return PyLong_FromLong(current_device()); }

PyObject *set_current_device(PyObject *, PyObject *arguments) {
  return with_device(arguments, [](c10::DeviceIndex device) {
    set_device(device);
    return none();
  });
}

/* Runs what may wait for the device without Python's lock: functions of Python that the device is to run need it. */
template <class Function> void without_python(Function function) {
  std::exception_ptr failure;
  PyThreadState *state = PyEval_SaveThread();
  try {
    function();
  } catch (...) {
    failure = std::current_exception();
  }
  PyEval_RestoreThread(state);
  if (failure)
    std::rethrow_exception(failure);
}

PyObject *synchronize(PyObject *, PyObject *arguments) {
  return with_device(arguments, [](c10::DeviceIndex device) {
    without_python([&] { synchronize_device(device); });
    return none();
  });
}

PyObject *memory_info(PyObject *, PyObject *arguments) {
  return with_device(arguments, [](c10::DeviceIndex device) {
    const auto [free_bytes, total] = device_allocator()->getMemoryInfo(device);
    return Py_BuildValue("nn", static_cast<Py_ssize_t>(free_bytes), static_cast<Py_ssize_t>(total));
  });
}

void put(PyObject *dictionary, const std::string &key, int64_t value) {
  PyObject *number = PyLong_FromLongLong(value);
  PyDict_SetItemString(dictionary, key.c_str(), number);
  Py_XDECREF(number);
}

void put_counter(PyObject *dictionary, const std::string &prefix, const c10::CachingAllocator::Stat &stat) {
  put(dictionary, prefix + "current", stat.current);
  put(dictionary, prefix + "peak", stat.peak);
  put(dictionary, prefix + "allocated", stat.allocated);
  put(dictionary, prefix + "freed", stat.freed);
}

void put_group(PyObject *dictionary, const char *name, const c10::CachingAllocator::StatArray &stats) {
  static const char *const pools[] = {"all", "small_pool", "large_pool"};
  for (size_t i = 0; i < 3; ++i)
    put_counter(dictionary, std::string(name) + "." + pools[i] + ".", stats[i]);
}

/* torch.cuda.memory_stats' keys. */
PyObject *memory_stats(PyObject *, PyObject *arguments) {
  return with_device(arguments, [](c10::DeviceIndex device) {
    const auto stats = device_allocator()->getDeviceStats(device);
    PyObject *result = PyDict_New();
    put_group(result, "allocation", stats.allocation);
    put_group(result, "segment", stats.segment);
    put_group(result, "active", stats.active);
    put_group(result, "inactive_split", stats.inactive_split);
    put_group(result, "allocated_bytes", stats.allocated_bytes);
    put_group(result, "reserved_bytes", stats.reserved_bytes);
    put_group(result, "active_bytes", stats.active_bytes);
    put_group(result, "inactive_split_bytes", stats.inactive_split_bytes);
    put_group(result, "requested_bytes", stats.requested_bytes);
    put(result, "num_alloc_retries", stats.num_alloc_retries);
    put(result, "num_ooms", stats.num_ooms);
    put(result, "num_device_alloc", stats.num_device_alloc);
    put(result, "num_device_free", stats.num_device_free);
    put(result, "max_split_size", stats.max_split_size);
    return result;
  });
}

/* torch.cuda.host_memory_stats' keys. */
PyObject *host_memory_stats(PyObject *, PyObject *) {
  return guarded([] {
    const at::HostStats stats = at::getHostAllocator(kDevice)->get_stats();
    PyObject *result = PyDict_New();
    put_counter(result, "allocations.", stats.allocations);
    put_counter(result, "allocated_bytes.", stats.allocated_bytes);
    put_counter(result, "active_requests.", stats.active_requests);
    put_counter(result, "active_bytes.", stats.active_bytes);
    put(result, "num_host_alloc", stats.num_host_alloc);
    put(result, "num_host_free", stats.num_host_free);
    return result;
  });
}

PyObject *empty_cache(PyObject *, PyObject *) {
  return guarded([] {
    without_python([] { device_allocator()->emptyCache({0, 0}); });
    return none();
  });
}

PyObject *record_history(PyObject *, PyObject *arguments) {
  int recording = 0, contexts = 0, clear = 0;
  unsigned long long most = 0;
  if (!PyArg_ParseTuple(arguments, "iiKp", &recording, &contexts, &most, &clear))
    return nullptr;
  return guarded([&] {
    record_memory_history(static_cast<MemoryRecording>(recording), static_cast<MemoryContexts>(contexts), most, clear != 0);
    return none();
  });
}

PyObject *get_memory_snapshot(PyObject *, PyObject *) {
  return guarded([] { return memory_snapshot(); });
}

PyObject *reset_peak_memory_stats(PyObject *, PyObject *arguments) {
  return with_device(arguments, [](c10::DeviceIndex device) {
    device_allocator()->resetPeakStats(device);
    return none();
  });
}

PyObject *reset_accumulated_memory_stats(PyObject *, PyObject *arguments) {
  return with_device(arguments, [](c10::DeviceIndex device) {
    device_allocator()->resetAccumulatedStats(device);
    return none();
  });
}

PyObject *set_fraction(PyObject *, PyObject *arguments) {
  double fraction;
  long long index = -1;
  if (!PyArg_ParseTuple(arguments, "d|L", &fraction, &index))
    return nullptr;
  return guarded([&] {
    set_memory_fraction(fraction, resolve_index(index));
    return none();
  });
}

PyObject *get_fraction(PyObject *, PyObject *arguments) {
  return with_device(arguments, [](c10::DeviceIndex device) { return PyFloat_FromDouble(memory_fraction(device)); });
}

int64_t attribute(c10::DeviceIndex device, aclrtDevAttr what) {
  int64_t value = 0;
  check_status(cann.aclrtGetDeviceInfo(static_cast<uint32_t>(device), what, &value), "aclrtGetDeviceInfo");
  return value;
}

PyObject *properties(PyObject *, PyObject *arguments) {
  return with_device(arguments, [](c10::DeviceIndex device) {
    ensure_initialized();
    const char *name = cann.aclrtGetSocName();
    const auto total = device_allocator()->getMemoryInfo(device).second;
    return Py_BuildValue("{s:s,s:n,s:L,s:L,s:L}", "name", name ? name : "unknown", "total_memory", static_cast<Py_ssize_t>(total),
                         "cube_core_num", static_cast<long long>(attribute(device, ACL_DEV_ATTR_CUBE_CORE_NUM)), "vector_core_num",
                         static_cast<long long>(attribute(device, ACL_DEV_ATTR_VECTOR_CORE_NUM)), "L2_cache_size",
                         static_cast<long long>(attribute(device, ACL_DEV_ATTR_L2_CACHE_SIZE)));
  });
}

PyObject *get_default_generator(PyObject *, PyObject *arguments) {
  return with_device(arguments, [](c10::DeviceIndex device) { return THPGenerator_Wrap(default_generator(device)); });
}

PyObject *get_fallback_counts(PyObject *, PyObject *) {
  return guarded([] {
    PyObject *result = PyDict_New();
    for (const auto &[name, count] : fallback_counts())
      put(result, name, count);
    return result;
  });
}

PyObject *do_reset_fallback_counts(PyObject *, PyObject *) {
  reset_fallback_counts();
  return none();
}

PyObject *priority_range(PyObject *, PyObject *) {
  const auto [least, greatest] = stream_priority_range();
  return Py_BuildValue("ii", least, greatest);
}

PyObject *stream_pointer(PyObject *, PyObject *arguments) {
  long long id;
  long long device;
  if (!PyArg_ParseTuple(arguments, "LL", &id, &device))
    return nullptr;
  return guarded([&] {
    const c10::Stream stream(c10::Stream::UNSAFE, c10::Device(kDevice, resolve_index(device)), id);
    return PyLong_FromVoidPtr(stream_handle(stream));
  });
}

PyObject *library_paths(PyObject *, PyObject *) {
  PyObject *list = PyList_New(0);
  for (int i = 0; const char *path = cann_library_path(i); ++i) {
    PyObject *text = PyUnicode_FromString(path);
    PyList_Append(list, text);
    Py_XDECREF(text);
  }
  return list;
}

PyObject *cann_version(PyObject *, PyObject *) {
  return guarded([] {
    aclCANNPackageVersion version{};
    check_status(cann.aclsysGetCANNVersion(ACL_PKG_NAME_CANN, &version), "aclsysGetCANNVersion");
    return PyUnicode_FromString(version.version);
  });
}

/* Name of each CANN function that the adapter uses -> was it found in the loaded libraries? */
PyObject *functions(PyObject *, PyObject *) {
  PyObject *result = PyDict_New();
  bool found;
  for (int i = 0; const char *name = cann_function_name(i, &found); ++i)
    PyDict_SetItemString(result, name, found ? Py_True : Py_False);
  return result;
}

PyMethodDef methods[] = {
    {"load", load, METH_VARARGS, "load(folder: str | None): opens CANN's libraries there, or by bare name."},
    {"init", init, METH_NOARGS, "Starts the runtime on the current device."},
    {"is_initialized", initialized, METH_NOARGS, "Has the runtime started in this process?"},
    {"is_in_bad_fork", bad_fork, METH_NOARGS, "Is this a child forked after the runtime had started?"},
    {"device_count", count_devices, METH_NOARGS, "Visible devices; doesn't start the runtime."},
    {"current_device", get_current_device, METH_NOARGS, "This thread's device."},
    {"set_device", set_current_device, METH_VARARGS, "set_device(index): RuntimeError when out of range."},
    {"synchronize", synchronize, METH_VARARGS, "synchronize(device=-1): waits for all streams; raises what failed."},
    {"memory_info", memory_info, METH_VARARGS, "memory_info(device=-1) -> (free, total) in bytes."},
    {"memory_stats", memory_stats, METH_VARARGS, "memory_stats(device=-1) -> flat dict with torch.cuda's keys."},
    {"host_memory_stats", host_memory_stats, METH_NOARGS, "host_memory_stats() -> counters of pinned memory, torch.cuda's keys."},
    {"empty_cache", empty_cache, METH_NOARGS, "Gives cached device memory back."},
    {"reset_peak_memory_stats", reset_peak_memory_stats, METH_VARARGS, "reset_peak_memory_stats(device=-1)."},
    {"reset_accumulated_memory_stats", reset_accumulated_memory_stats, METH_VARARGS, "reset_accumulated_memory_stats(device=-1)."},
    {"record_memory_history", record_history, METH_VARARGS,
     "record_memory_history(recording: 0 off, 1 state, 2 all; contexts: 0 none ... 3 all; most_events; clear)."},
    {"memory_snapshot", get_memory_snapshot, METH_NOARGS, "memory_snapshot() -> what torch's memory viewer reads."},
    {"set_memory_fraction", set_fraction, METH_VARARGS, "set_memory_fraction(fraction, device=-1)."},
    {"get_memory_fraction", get_fraction, METH_VARARGS, "get_memory_fraction(device=-1)."},
    {"properties", properties, METH_VARARGS, "properties(device=-1) -> dict(name, total_memory, cube_core_num, ...)."},
    {"default_generator", get_default_generator, METH_VARARGS,
     "default_generator(device=-1) -> torch.Generator; doesn't start the runtime."},
    {"fallback_counts", get_fallback_counts, METH_NOARGS, "Operators that ran on the CPU instead -> how often."},
    {"reset_fallback_counts", do_reset_fallback_counts, METH_NOARGS, "Forgets the counts."},
    {"stream_priority_range", priority_range, METH_NOARGS, "(least, greatest) priority of streams."},
    {"stream_pointer", stream_pointer, METH_VARARGS, "stream_pointer(stream_id, device) -> address of CANN's stream."},
    {"library_paths", library_paths, METH_NOARGS, "Paths of the loaded CANN libraries."},
    {"cann_version", cann_version, METH_NOARGS, "Version of CANN's C API that the loaded libraries name."},
    {"functions", functions, METH_NOARGS, "CANN functions that the adapter uses -> found?"},
    {nullptr, nullptr, 0, nullptr},
};

PyModuleDef module = {PyModuleDef_HEAD_INIT,
                      "torchtitan_npu._bridge",
                      "The C++ half of torchtitan_npu.",
                      -1,
                      methods,
                      nullptr,
                      nullptr,
                      nullptr,
                      nullptr};

} // namespace
} // namespace npu

PyMODINIT_FUNC PyInit__bridge(void) { return PyModule_Create(&npu::module); }
