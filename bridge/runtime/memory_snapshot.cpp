/* _bridge.memory_snapshot: segments, blocks and events of the allocator as the dictionaries that torch's memory viewer reads. */
#include <Python.h>

#include <torch/csrc/profiler/combined_traceback.h>

#include <map>

#include "bridge/runtime/memory_history.h"
#include "bridge/runtime/runtime.h"

namespace npu {
namespace {

/* A file's name may be of any bytes. */
PyObject *text_of(const std::string &bytes) {
  return PyUnicode_DecodeUTF8(bytes.data(), static_cast<Py_ssize_t>(bytes.size()), "replace");
}

/* The stacks of a snapshot, each made once: context -> list of frames (owned here). */
class Stacks {
public:
  void add(const MemoryContext &context) {
    if (auto *traceback = dynamic_cast<torch::CapturedTraceback *>(context.get());
        traceback && lists_.emplace(context.get(), nullptr).second)
      tracebacks_.push_back(traceback);
  }
  void make() {
    const torch::SymbolizedTracebacks symbols = torch::symbolize(tracebacks_);
    std::vector<PyObject *> frames;
    for (const auto &frame : symbols.all_frames)
      frames.push_back(Py_BuildValue("{s:N,s:N,s:K}", "filename", text_of(frame.filename), "name", text_of(frame.funcname), "line",
                                     static_cast<unsigned long long>(frame.lineno)));
    for (size_t i = 0; i < tracebacks_.size(); ++i) {
      PyObject *list = PyList_New(0);
      for (const uint64_t index : symbols.tracebacks[i])
        PyList_Append(list, frames[index]);
      lists_[static_cast<const c10::GatheredContext *>(tracebacks_[i])] = list;
    }
    for (PyObject *frame : frames)
      Py_XDECREF(frame);
  }
  /* A new reference. */
  PyObject *list(const MemoryContext &context) const {
    const auto found = lists_.find(context.get());
    return found == lists_.end() || !found->second ? PyList_New(0) : Py_NewRef(found->second);
  }
  ~Stacks() {
    for (const auto &[context, list] : lists_)
      Py_XDECREF(list);
  }

private:
  std::vector<torch::CapturedTraceback *> tracebacks_;
  std::map<const c10::GatheredContext *, PyObject *> lists_;
};

unsigned long long number(uint64_t value) { return value; }

PyObject *block_entry(const MemoryBlock &block, const Stacks &stacks) {
  return Py_BuildValue("{s:K,s:K,s:K,s:s,s:N}", "address", number(block.address), "size", number(block.size), "requested_size",
                       number(block.requested), "state", block.state, "frames", stacks.list(block.context));
}

PyObject *segment_entry(c10::DeviceIndex device, const MemorySegment &segment, const Stacks &stacks) {
  uint64_t allocated = 0, active = 0, requested = 0;
  PyObject *blocks = PyList_New(0);
  for (const MemoryBlock &block : segment.blocks) {
    const std::string_view state = block.state;
    allocated += state == "active_allocated" ? block.size : 0;
    active += state != "inactive" ? block.size : 0;
    requested += state != "inactive" ? block.requested : 0;
    PyObject *entry = block_entry(block, stacks);
    PyList_Append(blocks, entry);
    Py_XDECREF(entry);
  }
  return Py_BuildValue("{s:i,s:K,s:K,s:K,s:K,s:K,s:L,s:s,s:(ii),s:O,s:[],s:N}", "device", static_cast<int>(device), "address",
                       number(segment.address), "total_size", number(segment.size), "allocated_size", number(allocated),
                       "active_size", number(active), "requested_size", number(requested), "stream",
                       static_cast<long long>(segment.stream), "segment_type", segment.small ? "small" : "large", "segment_pool_id",
                       0, 0, "is_expandable", Py_False, "frames", "blocks", blocks);
}

PyObject *event_entry(const MemoryEvent &event, const Stacks &stacks) {
  const bool out_of_memory = std::string_view(event.action) == "oom";
  return Py_BuildValue("{s:s,s:K,s:K,s:L,s:L,s:N}", "action", event.action, out_of_memory ? "device_free" : "addr",
                       number(out_of_memory ? event.device_free : event.address), "size", number(event.size), "stream",
                       static_cast<long long>(event.stream), "time_us", static_cast<long long>(event.time), "frames",
                       stacks.list(event.context));
}

void append(PyObject *list, PyObject *entry) {
  if (entry)
    PyList_Append(list, entry);
  Py_XDECREF(entry);
}

} // namespace

PyObject *memory_snapshot() {
  const c10::DeviceIndex devices = device_count();
  std::vector<std::vector<MemorySegment>> segments;
  std::vector<std::deque<MemoryEvent>> events;
  Stacks stacks;
  for (c10::DeviceIndex device = 0; device < devices; ++device) {
    for (const MemorySegment &segment : segments.emplace_back(memory_segments(device)))
      for (const MemoryBlock &block : segment.blocks)
        stacks.add(block.context);
    for (const MemoryEvent &event : events.emplace_back(memory_events(device)))
      stacks.add(event.context);
  }
  stacks.make();
  PyObject *all_segments = PyList_New(0), *traces = PyList_New(0);
  for (c10::DeviceIndex device = 0; device < devices; ++device) {
    for (const MemorySegment &segment : segments[device])
      append(all_segments, segment_entry(device, segment, stacks));
    PyObject *trace = PyList_New(0);
    for (const MemoryEvent &event : events[device])
      append(trace, event_entry(event, stacks));
    append(traces, trace);
  }
  PyObject *snapshot = Py_BuildValue("{s:N,s:N,s:{},s:[]}", "segments", all_segments, "device_traces", traces, "allocator_settings",
                                     "external_annotations");
  return PyErr_Occurred() ? (Py_XDECREF(snapshot), nullptr) : snapshot;
}

} // namespace npu
