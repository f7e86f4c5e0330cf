#include "apps/python/bindings/bindings.h"
#include "core/base/errors.h"
#include "core/pipeline/run_scenario.h"
#include "gpu/launch/device_error.h"

namespace kvscope::python {
namespace {

// Raises the exception of kvscope/_errors.py of that name, with its faults as (where, message).
void raise(const char* type, const std::string& message, const std::vector<Fault>& faults) {
  try {
    py::list list;
    for (const Fault& fault : faults) list.append(py::make_tuple(fault.where, fault.message));
    const py::object error = py::module_::import("kvscope._errors").attr(type)(message, list);
    PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(error.ptr())), error.ptr());
  } catch (py::error_already_set& error) {
    error.restore();
  }
}

void translate(std::exception_ptr pointer) {
  if (!pointer) return;
  try {
    std::rethrow_exception(pointer);
  } catch (const IllegalAddress& error) {
    raise("IllegalAddress", error.what(), {{"", error.what()}});
  } catch (const IndexError& error) {
    raise("IndexError", error.what(), {{"", error.what()}});
  } catch (const GeometryError& error) {
    raise("GeometryError", error.what(), error.faults());
  } catch (const InputError& error) {
    raise("InputError", error.what(), error.faults());
  } catch (const UnsupportedError& error) {
    raise("UnsupportedError", error.what(), {{"", error.what()}});
  } catch (const OverflowError& error) {
    raise("OverflowError", error.what(), {{"", error.what()}});
  } catch (const gpu::DeviceError& error) {
    raise("DeviceError", error.what(), {{"", error.what()}});
  }
}

}  // namespace

bool no_signal() {
  const py::gil_scoped_acquire lock;
  return PyErr_CheckSignals() == 0;
}

void bind_errors(py::module_&) {
  py::register_exception_translator(&translate);
}

py::object to_python(const json::Value& value) {
  return std::visit(
      [](const auto& data) -> py::object {
        using T = std::decay_t<decltype(data)>;
        if constexpr (std::is_same_v<T, std::nullptr_t>) {
          return py::none();
        } else if constexpr (std::is_same_v<T, json::Array>) {
          py::list out;
          for (const json::Value& item : data) out.append(to_python(item));
          return out;
        } else if constexpr (std::is_same_v<T, json::Object>) {
          py::dict out;
          for (const json::Member& member : data) out[py::str(member.first)] = to_python(member.second);
          return out;
        } else {
          return py::cast(data);
        }
      },
      value.data());
}

}  // namespace kvscope::python

PYBIND11_MODULE(_core, module) {
  namespace bindings = kvscope::python;
  module.attr("__version__") = KVSCOPE_VERSION;
  bindings::bind_errors(module);
  bindings::bind_arrays(module);
  bindings::bind_problem(module);
  bindings::bind_golden(module);
  bindings::bind_run(module);
  bindings::bind_launch(module);
  bindings::bind_fragment(module);
}
