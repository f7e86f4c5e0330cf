#include "viz/window/vector_device.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include <QtCore/QtMath>
#include <QtGui/QImage>
#include <QtGui/QPixmap>

#include "core/base/errors.h"

namespace kvscope::viz {
namespace {

bool is_rectangle(const QPainterPath& path) {
  if (path.elementCount() != 5) return path.isEmpty();
  const QRectF bounds = path.boundingRect();
  for (int i = 0; i < path.elementCount(); ++i) {
    const QPainterPath::Element at = path.elementAt(i);
    if (i > 0 && at.type != QPainterPath::LineToElement) return false;
    if ((at.x != bounds.left() && at.x != bounds.right()) || (at.y != bounds.top() && at.y != bounds.bottom())) {
      return false;
    }
  }
  return true;
}

// Rectangles are frequent and computed exactly; other shapes use Qt's path operations.
QPainterPath intersection(const QPainterPath& a, const QPainterPath& b) {
  if (!is_rectangle(a) || !is_rectangle(b)) return a.intersected(b);
  QPainterPath both;
  both.addRect(a.boundingRect().intersected(b.boundingRect()));
  return both;
}

}  // namespace

std::string decimal(double value) {
  const auto thousandths = std::llround(value * 1000);
  std::string text = fmt::format("{}{}", thousandths < 0 ? "-" : "", std::abs(thousandths) / 1000);
  if (const auto rest = std::abs(thousandths) % 1000; rest != 0) {
    std::string digits = fmt::format("{:03}", rest);
    digits.erase(digits.find_last_not_of('0') + 1);
    text += "." + digits;
  }
  return text;
}

VectorEngine::VectorEngine(PaintEngineFeatures omitted)
    : QPaintEngine(AllFeatures & ~(omitted | RadialGradientFill | ConicalGradientFill | PerspectiveTransform |
                                   ObjectBoundingModeGradients | PorterDuff | BlendModes | RasterOpModes)) {}

bool VectorEngine::begin(QPaintDevice*) {
  body_.clear();
  clip_.reset();
  return true;
}

bool VectorEngine::end() {
  leave_clip();
  return true;
}

void VectorEngine::updateState(const QPaintEngineState& now) {
  const DirtyFlags dirty = now.state();
  if (dirty & DirtyPen) pen_ = now.pen();
  if (dirty & DirtyBrush) brush_ = now.brush();
  if (dirty & DirtyTransform) transform_ = now.transform();
  if (dirty & DirtyOpacity) opacity_ = now.opacity();
  if (dirty & DirtyClipEnabled && !now.isClipEnabled()) clip_.reset();
  if (dirty & DirtyClipRegion) {
    QPainterPath path;
    path.addRegion(now.clipRegion());
    set_clip(now.clipOperation(), now.transform().map(path));
  }
  if (dirty & DirtyClipPath) set_clip(now.clipOperation(), now.transform().map(now.clipPath()));
}

void VectorEngine::drawPixmap(const QRectF& target, const QPixmap& pixmap, const QRectF& source) {
  drawImage(target, pixmap.toImage(), source, Qt::AutoColor);
}

void VectorEngine::set_clip(Qt::ClipOperation operation, const QPainterPath& path) {
  if (operation == Qt::NoClip) {
    clip_.reset();
  } else if (operation == Qt::ReplaceClip || !clip_) {
    clip_ = path;
  } else {
    clip_ = intersection(*clip_, path);
  }
}

bool VectorEngine::leave_clip() {
  if (open_clip_.empty()) return false;
  body_ += clip_end();
  open_clip_.clear();
  return true;
}

bool VectorEngine::enter_clip() {
  const std::string outline = clip_ ? outline_text(*clip_) : "";
  if (outline == open_clip_) return false;
  leave_clip();
  if (!outline.empty()) body_ += clip_begin(outline);
  open_clip_ = outline;
  return true;
}

void VectorEngine::put(std::string_view element) {
  enter_clip();
  body_ += element;
}

const std::string& VectorDevice::body() const {
  KVSCOPE_ASSERT(!engine_->isActive());
  return engine_->body();
}

int VectorDevice::metric(PaintDeviceMetric metric) const {
  constexpr int kDotsPerInch = 96;
  switch (metric) {
    case PdmWidth:
      return qCeil(size_.width());
    case PdmHeight:
      return qCeil(size_.height());
    case PdmWidthMM:
      return qCeil(size_.width() * 25.4 / kDotsPerInch);
    case PdmHeightMM:
      return qCeil(size_.height() * 25.4 / kDotsPerInch);
    case PdmNumColors:
      return std::numeric_limits<int>::max();
    case PdmDepth:
      return 24;
    case PdmDpiX:
    case PdmDpiY:
    case PdmPhysicalDpiX:
    case PdmPhysicalDpiY:
      return kDotsPerInch;
    case PdmDevicePixelRatio:
      return 1;
    case PdmDevicePixelRatioScaled:
      return static_cast<int>(devicePixelRatioFScale());
  }
  return 0;
}

}  // namespace kvscope::viz
