#include "viz/window/kernel_launch_panel.h"

#include <algorithm>

#include <QtGui/QClipboard>
#include <QtGui/QGuiApplication>
#include <QtWidgets/QComboBox>
#include <QtWidgets/QFormLayout>
#include <QtWidgets/QHBoxLayout>
#include <QtWidgets/QLabel>
#include <QtWidgets/QLineEdit>
#include <QtWidgets/QPlainTextEdit>
#include <QtWidgets/QPushButton>
#include <QtWidgets/QVBoxLayout>

#include "core/base/shell_words.h"
#include "viz/window/fault_words.h"

namespace kvscope::viz {
namespace {

constexpr int kCommandLines = 4;

QLineEdit* add_field(QFormLayout& form, const QString& label, const QString& hint, const QString& tip) {
  auto* field = new QLineEdit;
  field->setPlaceholderText(hint);
  field->setToolTip(tip);
  field->setAccessibleName(label);
  form.addRow(label, field);
  return field;
}

std::string text_of(const QLineEdit& field) {
  return field.text().trimmed().toStdString();
}

// The forms of a value that fit a parameter.
QString hint_of(const KernelParameter& parameter) {
  if (parameter.type.find("bytes") != std::string::npos) return KernelLaunchPanel::tr("@params.json, or fields below");
  const bool is_wide = parameter.type == "u64" || parameter.type == "b64" || parameter.type.ends_with('*');
  if (is_wide) return KernelLaunchPanel::tr("f32[64], x.npy, @0, null, 42");
  const bool is_real = parameter.type.find('f') != std::string::npos || parameter.type == "double";
  return is_real ? QStringLiteral("2.5") : QStringLiteral("42");
}

}  // namespace

KernelLaunchPanel::KernelLaunchPanel(Command command, QWidget* parent)
    : QWidget(parent),
      command_(std::move(command)),
      kernel_(new QComboBox),
      parameters_(new QWidget),
      rows_(new QFormLayout(parameters_)),
      start_(new QPushButton(tr("Start"))),
      copy_(new QPushButton(tr("Copy"))),
      shown_command_(new QPlainTextEdit) {
  setAccessibleName(tr("Launch"));
  auto* form = new QFormLayout;
  form->setFieldGrowthPolicy(QFormLayout::ExpandingFieldsGrow);
  form->setRowWrapPolicy(QFormLayout::WrapLongRows);
  form->addRow(tr("Kernel"), kernel_);
  kernel_->setAccessibleName(tr("Kernel"));
  kernel_->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
  kernel_->setMinimumContentsLength(5);
  grid_ = add_field(*form, tr("Grid"), QStringLiteral("1"), tr("CTAs of the grid, such as 4 or 4,2"));
  block_ = add_field(*form, tr("Block"), QStringLiteral("1"), tr("Threads of a CTA, such as 64 or 32,4"));
  cluster_ = add_field(*form, tr("Cluster"), tr("none"), tr("CTAs of a cluster, such as 2"));
  shared_ = add_field(*form, tr("Shared memory"), QStringLiteral("0"), tr("Dynamic shared memory of a CTA in bytes"));
  rows_->setContentsMargins(0, 0, 0, 0);
  rows_->setFieldGrowthPolicy(QFormLayout::ExpandingFieldsGrow);
  rows_->setRowWrapPolicy(QFormLayout::WrapLongRows);
  auto* more = new QFormLayout;
  more->setFieldGrowthPolicy(QFormLayout::ExpandingFieldsGrow);
  more->setRowWrapPolicy(QFormLayout::WrapLongRows);
  others_ = add_field(*more, tr("More options"), QStringLiteral("--policy early"),
                      tr("Further options of kvscope ptx run, such as --policy seed:7 or --arg p.n=64"));
  shown_command_->setReadOnly(true);
  shown_command_->setAccessibleName(tr("The command that debugs this launch"));
  shown_command_->setTabChangesFocus(true);
  start_->setDefault(true);
  start_->setToolTip(tr("Execute the launch, and step it from its beginning"));
  auto* column = new QVBoxLayout(this);
  column->addLayout(form);
  auto* heading = new QLabel(tr("Parameters"));
  heading->setProperty("dock-title", true);
  column->addWidget(heading);
  column->addWidget(parameters_);
  column->addLayout(more);
  auto* buttons = new QHBoxLayout;
  buttons->addWidget(start_, 1);
  buttons->addWidget(copy_);
  copy_->setToolTip(tr("Copy the command"));
  copy_->setAccessibleName(tr("Copy the command"));
  column->addLayout(buttons);
  column->addWidget(shown_command_);
  column->addStretch(1);

  for (QLineEdit* field : {grid_, block_, cluster_, shared_, others_}) {
    connect(field, &QLineEdit::textChanged, this, &KernelLaunchPanel::show_command);
    connect(field, &QLineEdit::returnPressed, this, &KernelLaunchPanel::start_wanted);
  }
  connect(kernel_, &QComboBox::currentIndexChanged, this, [this] {
    if (const KernelEntry* const now = entry(); now != nullptr && !now->block.empty()) {
      block_->setText(QString::fromStdString(now->block));
    }
    show_parameters({});
  });
  connect(start_, &QPushButton::clicked, this, &KernelLaunchPanel::start_wanted);
  connect(copy_, &QPushButton::clicked, this,
          [this] { QGuiApplication::clipboard()->setText(shown_command_->toPlainText()); });
}

const KernelEntry* KernelLaunchPanel::entry() const {
  const int at = kernel_->currentIndex();
  return at < 0 || at >= std::ssize(file_.entries) ? nullptr : &file_.entries[static_cast<std::size_t>(at)];
}

void KernelLaunchPanel::set_file(const KernelFile& file, const KernelLaunch& launch) {
  file_ = file;
  {
    const QSignalBlocker quiet(kernel_);
    kernel_->clear();
    for (const KernelEntry& e : file.entries) kernel_->addItem(QString::fromStdString(e.shown));
    const auto wanted = std::ranges::find_if(
        file.entries, [&](const KernelEntry& e) { return e.name == launch.entry || e.shown == launch.entry; });
    const bool is_known = wanted != file.entries.end();
    const int first = launch.entry.empty() ? 0 : -1;
    kernel_->setCurrentIndex(is_known ? static_cast<int>(wanted - file.entries.begin()) : first);
    unknown_ = is_known ? std::string() : launch.entry;
    kernel_->setPlaceholderText(QString::fromStdString(unknown_));
  }
  const auto set = [](QLineEdit& field, const std::string& text) { field.setText(QString::fromStdString(text)); };
  set(*grid_, launch.grid);
  set(*block_, launch.block == "1" && entry() != nullptr && !entry()->block.empty() ? entry()->block : launch.block);
  set(*cluster_, launch.cluster);
  set(*shared_, launch.shared == "0" ? "" : launch.shared);
  set(*others_, shell_line(launch.others));
  show_parameters(launch.arguments);
}

KernelLaunch KernelLaunchPanel::launch() const {
  KernelLaunch out;
  out.path = file_.path;
  const KernelEntry* const now = entry();
  // The only kernel needs no name.
  if (now == nullptr || file_.entries.size() > 1) out.entry = now == nullptr ? unknown_ : now->name;
  const auto or_else = [](const QLineEdit& field, const char* otherwise) {
    const std::string text = text_of(field);
    return text.empty() ? std::string(otherwise) : text;
  };
  out.grid = or_else(*grid_, "1");
  out.block = or_else(*block_, "1");
  out.cluster = text_of(*cluster_);
  out.shared = or_else(*shared_, "0");
  for (const QLineEdit* value : values_) out.arguments.push_back(text_of(*value));
  out.others = shell_words(others_->text().toStdString());
  return out;
}

void KernelLaunchPanel::show_parameters(const std::vector<std::string>& values) {
  while (rows_->rowCount() > 0) rows_->removeRow(0);
  values_.clear();
  const KernelEntry* const now = entry();
  for (std::size_t i = 0; now != nullptr && i < now->parameters.size(); ++i) {
    const KernelParameter& parameter = now->parameters[i];
    QLineEdit* const field = add_field(
        *rows_, parameter.name.empty() ? tr("Parameter %1").arg(i) : QString::fromStdString(parameter.name),
        hint_of(parameter), tr("Parameter %1, %2").arg(QString::number(i), QString::fromStdString(parameter.type)));
    if (i < values.size()) field->setText(QString::fromStdString(values[i]));
    connect(field, &QLineEdit::textChanged, this, &KernelLaunchPanel::show_command);
    connect(field, &QLineEdit::returnPressed, this, &KernelLaunchPanel::start_wanted);
    values_.push_back(field);
  }
  QWidget* before = shared_;
  for (QLineEdit* field : values_) {
    setTabOrder(before, field);
    before = field;
  }
  setTabOrder(before, others_);
  show_command();
}

void KernelLaunchPanel::show_command() {
  if (file_.path.empty()) return;
  try {
    shown_command_->setPlainText(QString::fromStdString(command_(launch())));
  } catch (...) {
    shown_command_->setPlainText(current_fault_lines().join(QLatin1Char('\n')));
  }
}

void KernelLaunchPanel::set_theme(const Theme&, double font_scale) {
  shown_command_->setFont(mono_font(12 * font_scale));
  shown_command_->setFixedHeight(shown_command_->fontMetrics().height() * kCommandLines + 16);
}

}  // namespace kvscope::viz
