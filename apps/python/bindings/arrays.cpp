// Tensors and bundles: bytes in by the buffer protocol, copied or in place; bytes out as buffers that share the
// bundle's memory.
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "apps/python/bindings/bindings.h"
#include "core/base/convert.h"
#include "core/base/errors.h"
#include "core/golden/bundle/bundle.h"

namespace kvscope::python {
namespace {

using golden::Bundle;

// A tensor of a bundle; it keeps the bundle alive.
struct TensorView {
  std::shared_ptr<Bundle> owner;
  golden::Tensor* tensor;
};

// The memory of an exporter of Python, which can neither free nor move it until the last copy is gone.
std::shared_ptr<const void> owner_of(const py::buffer& data) {
  return {new py::buffer_info(data.request()), [](const py::buffer_info* view) {
            if (!Py_IsInitialized()) return;  // the memory went with the interpreter
            const py::gil_scoped_acquire lock;
            delete view;
          }};
}

// Vectors have at least this alignment; borrowed bytes of less are copied.
constexpr std::uintptr_t kAlignment = 8;  // [bytes]

// Adds a tensor; with `borrow` it reads the memory of `data` in place.
void add(Bundle& bundle, const std::string& name, const std::string& dtype, std::vector<std::int64_t> shape,
         const py::buffer& data, bool borrow) {
  const std::optional<DType> type = dtype_from_name(dtype);
  if (!type) throw InputError("arguments", name, "has the element type '" + dtype + "', which kvscope does not have");
  if (shape.size() > golden::kMaxRank) {
    throw InputError("arguments", name, "has " + std::to_string(shape.size()) + " axes: at most 32 are supported");
  }
  const std::optional<std::int64_t> bytes = golden::byte_count(*type, shape);
  const py::buffer_info info = data.request();
  if (info.ndim != 1 || info.itemsize != 1 || (info.size > 1 && info.strides[0] != 1)) {
    throw InputError("arguments", name, "is no buffer of contiguous bytes with one axis");
  }
  if (!bytes || info.size != *bytes) {
    throw InputError(
        "arguments", name,
        "has " + std::to_string(info.size) + " bytes, which are not " + dtype + " " + golden::shape_text(shape));
  }
  golden::Tensor tensor{*type, std::move(shape), {}};
  const std::span given(static_cast<const std::byte*>(info.ptr), static_cast<std::size_t>(*bytes));
  if (borrow && !given.empty() && reinterpret_cast<std::uintptr_t>(info.ptr) % kAlignment == 0) {
    tensor.bytes = golden::TensorBytes::borrow(given, owner_of(data));
  } else {
    const py::gil_scoped_release release;
    tensor.bytes = golden::TensorBytes(given.begin(), given.end());
  }
  bundle.tensors[name] = std::move(tensor);
}

}  // namespace

void bind_arrays(py::module_& module) {
  py::class_<TensorView>(module, "Tensor", py::buffer_protocol())
      .def_property_readonly("dtype", [](const TensorView& view) { return std::string(name(view.tensor->dtype)); })
      .def_property_readonly("shape", [](const TensorView& view) { return view.tensor->shape; })
      .def_buffer([](TensorView& view) {
        const golden::TensorBytes& bytes = view.tensor->bytes;
        return py::buffer_info(reinterpret_cast<const unsigned char*>(bytes.data()),
                               static_cast<py::ssize_t>(bytes.size()), true);
      });
  py::class_<Bundle, std::shared_ptr<Bundle>>(module, "Bundle")
      .def(py::init<>())
      .def("add", &add)
      .def("borrows",
           [](const Bundle& bundle, const std::string& name) { return bundle.tensors.at(name).bytes.borrows(); })
      .def("names",
           [](const Bundle& bundle) {
             std::vector<std::string> names;
             for (const auto& entry : bundle.tensors) names.push_back(entry.first);
             return names;
           })
      .def("get",
           [](const std::shared_ptr<Bundle>& bundle, const std::string& name) {
             const auto found = bundle->tensors.find(name);
             if (found == bundle->tensors.end()) throw InputError("bundle", name, "is not a tensor of this bundle");
             return TensorView{bundle, &found->second};
           })
      .def("manifest", [](const Bundle& bundle) { return to_python(bundle.manifest); })
      .def("save", [](const Bundle& bundle, const std::string& path) {
        const py::gil_scoped_release release;
        golden::save_bundle(path, bundle);
      });
  module.def("load_bundle", [](const std::string& path) {
    const py::gil_scoped_release release;
    return std::make_shared<Bundle>(golden::load_bundle(path));
  });
  module.def("bits", [](const std::string& dtype) {
    const std::optional<DType> type = dtype_from_name(dtype);
    if (!type) throw InputError("arguments", "dtype", "'" + dtype + "' is not an element type of kvscope");
    return py::make_tuple(std::string(name(*type)), bits(*type));
  });
  // The bytes of a number in that type, rounded once; infinity, or the type's largest number, if it is too large.
  module.def("rounded", [](const std::string& dtype, double value) {
    const DType type = dtype_from_name(dtype).value();
    std::array<std::byte, 8> bytes{};
    store_from_double(type, value, bytes.data(), Overflow::non_saturating, NanSign::kept);
    return py::bytes(reinterpret_cast<const char*>(bytes.data()), static_cast<std::size_t>(size_of(type)));
  });
}

}  // namespace kvscope::python
