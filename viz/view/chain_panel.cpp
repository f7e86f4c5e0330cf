// The line below the cards of the tile view: the whole chain of what is lit, from its token to its register, in words.
#include <QtCore/QCoreApplication>
#include <QtGui/QTextOption>

#include "viz/view/text.h"
#include "viz/view/tile_panel.h"

namespace kvscope::viz {
namespace {

constexpr double kSentence = 14, kKeys = 12, kKeysHeight = 16;  // [px] at font scale 1

class ChainPanel final : public TilePanel {
  Q_DECLARE_TR_FUNCTIONS(ChainPanel)

 public:
  [[nodiscard]] PanelId id() const override { return PanelId::chain; }
  [[nodiscard]] QString title() const override { return tr("From token to register"); }
  // The sentence follows the selection, so it belongs to the overlay.
  void paint_overlay(QPainter& painter, const QRectF& body, const Scene& scene) const override {
    if (scene.tile == nullptr) return;
    painter.save();
    painter.setFont(ui_font(scene.px(kSentence)));
    painter.setPen(scene.theme->text);
    QTextOption option(Qt::AlignLeft | Qt::AlignTop);
    option.setWrapMode(QTextOption::WordWrap);
    painter.drawText(body, tile_summary(scene), option);
    painter.restore();
  }

 protected:
  [[nodiscard]] QString tile_subtitle(const Scene&) const override { return {}; }
  [[nodiscard]] QString tile_summary(const Scene& scene) const override {
    return QString::fromStdString(viz::chain(*scene.tile, *scene.tile_now, scene.lit().tile));
  }
  void paint_tile(QPainter& painter, const QRectF& body, const Scene& scene) const override {
    if (!scene.in_window) return;
    const QFont font = ui_font(scene.px(kKeys));
    const QString keys = tr(", and . step · Space plays · click any cell to follow it both ways");
    const QRectF line(body.left(), body.bottom() - scene.px(kKeysHeight), body.width(), scene.px(kKeysHeight));
    draw_text_in(painter, font, scene.theme->text_quiet, line, Qt::AlignLeft, elided(font, keys, line.width()));
  }
  [[nodiscard]] std::vector<PanelCell> tile_cells(const QRectF&, const Scene&) const override { return {}; }
};

}  // namespace

std::unique_ptr<Panel> make_chain_panel() {
  return std::make_unique<ChainPanel>();
}

}  // namespace kvscope::viz
