// The module kvscope._core: what the Python package needs of kvscope's libraries, as plain values.
//
// Reports cross the border as dicts, tensors as buffers, options as dicts that the Python layer has checked. Calls that
// compute release the interpreter's lock; none of them has global state, so threads may call them at once.
#pragma once

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>

#include "core/base/errors.h"
#include "core/base/interruption.h"
#include "core/base/json.h"
#include "core/golden/bundle/tensor.h"

namespace kvscope::python {

namespace py = pybind11;

void bind_errors(py::module_& module);
void bind_arrays(py::module_& module);
void bind_problem(py::module_& module);
void bind_golden(py::module_& module);
void bind_run(py::module_& module);
void bind_launch(py::module_& module);
void bind_fragment(py::module_& module);

[[nodiscard]] py::object to_python(const json::Value& value);

// Whether no signal handler of Python has raised an exception, which then stays set. Takes the interpreter's lock.
[[nodiscard]] bool no_signal();

// work() without the interpreter's lock. Ctrl+C stops it at its next interruption point (core/base/interruption.h).
template <class Work>
auto without_lock(const Work& work) {
  try {
    const py::gil_scoped_release release;
    const Interruptible interruptible(&no_signal);
    return work();
  } catch (const Cancelled&) {
    throw py::error_already_set();
  }
}

template <class T>
[[nodiscard]] std::string whole_number_from(T least) {
  return "a whole number from " + std::to_string(least) + " to " + std::to_string(std::numeric_limits<T>::max());
}

// The values of an option of that type: "a whole number from -9223372036854775808 to 9223372036854775807".
template <class T>
[[nodiscard]] std::string kind_of_option() {
  if constexpr (std::is_same_v<T, bool>) {
    return "True or False";
  } else if constexpr (std::is_integral_v<T>) {
    return whole_number_from(std::numeric_limits<T>::min());
  } else if constexpr (std::is_floating_point_v<T>) {
    return "a number";
  } else if constexpr (std::is_same_v<T, std::string>) {
    return "a text";
  } else {
    return "a list, each item " + kind_of_option<typename T::value_type>();
  }
}

[[noreturn]] inline void throw_wrong_option(const py::dict& options, const char* key, const std::string& kind) {
  throw InputError("arguments", key, "is " + py::repr(options[key]).cast<std::string>() + ": pass " + kind);
}

// The value of `key`, or nothing where it is absent or None. InputError for a value of another kind.
template <class T>
[[nodiscard]] std::optional<T> option(const py::dict& options, const char* key,
                                      const std::string& kind = kind_of_option<T>()) {
  if (!options.contains(key) || options[key].is_none()) return std::nullopt;
  try {
    return options[key].cast<T>();
  } catch (const py::cast_error&) {
    throw_wrong_option(options, key, kind);
  }
}

// The same for a number that is at least `least`.
template <class T>
[[nodiscard]] std::optional<T> limit(const py::dict& options, const char* key, T least) {
  const std::string kind = whole_number_from(least);
  const std::optional<T> value = option<T>(options, key, kind);
  if (value && *value < least) throw_wrong_option(options, key, kind);
  return value;
}

}  // namespace kvscope::python
