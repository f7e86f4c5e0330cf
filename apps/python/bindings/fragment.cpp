// Fragments of matrix instructions: the lane and register of each element of a tile.
#include <pybind11/numpy.h>

#include "apps/python/bindings/bindings.h"
#include "core/fragment/fragment_catalog.h"

namespace kvscope::python {
namespace {

py::dict fragment(const std::string& asked) {
  const FragmentMap map = cataloged_fragment("arguments", asked);
  const FragmentInfo& info = map.info();
  py::array_t<std::int32_t> lanes({info.rows, info.columns}), elements({info.rows, info.columns});
  auto lane = lanes.mutable_unchecked<2>();
  auto element = elements.mutable_unchecked<2>();
  for (int row = 0; row < info.rows; ++row) {
    for (int column = 0; column < info.columns; ++column) {
      const FragmentPlace place = map.fragment_of({row, column});
      lane(row, column) = place.lane;
      element(row, column) = place.element;
    }
  }
  py::dict out;
  out["name"] = info.name;
  out["row_name"] = info.row_name;
  out["column_name"] = info.column_name;
  out["lanes"] = info.lanes;
  out["elements"] = info.elements;
  out["elements_per_register"] = info.elements_per_register;
  out["lane"] = lanes;
  out["element"] = elements;
  return out;
}

}  // namespace

void bind_fragment(py::module_& module) {
  module.def("fragment", &fragment);
  module.def("fragment_names", [] {
    std::vector<std::string> names;
    for (const CatalogedFragment& entry : fragment_catalog()) names.push_back(entry.name);
    return names;
  });
}

}  // namespace kvscope::python
