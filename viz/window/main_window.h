// The window: menus, transport bar, messages, canvas or start page, docks. It connects these parts and does not depend
// on the simulator: questions that a run's events do not answer go to the Backend.
//
// If anything fails, the open document stays open at its position. Closing the window during a task cancels the task:
// the window is hidden immediately, and its destructor waits until the backend has stopped.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <QtCore/QPointer>
#include <QtCore/QTimer>
#include <QtWidgets/QMainWindow>

#include "core/scenario/notes.h"
#include "viz/geometry/board.h"
#include "viz/model/document.h"
#include "viz/model/tour.h"
#include "viz/window/actions.h"
#include "viz/window/asker.h"
#include "viz/window/backend.h"
#include "viz/window/gallery_pictures.h"
#include "viz/window/history.h"
#include "viz/window/job.h"
#include "viz/window/loader.h"
#include "viz/window/open_wish.h"
#include "viz/window/recent_files.h"
#include "viz/window/session.h"

class QActionGroup;
class QLabel;
class QMenu;
class QSplitter;
class QStackedWidget;

namespace kvscope::viz {

class AttentionBar;
class BreakpointsPanel;
class BusyBar;
class Canvas;
class CanvasScroll;
class CompareBar;
class DockTabs;
class DockTitle;
class EventsPanel;
class ExportBar;
class StatusLine;
class TileBar;
class TourPanel;
class FindBar;
class KernelWindow;
class LabPanel;
class MessageBar;
class NotesPanel;
class Overlay;
class Caption;
class Presentation;
class ScenarioPanel;
class SequencesPanel;
class StartPage;
class TransportBar;
class WhyPanel;

class MainWindow final : public QMainWindow {
  Q_OBJECT
 public:
  // `folder` is where the session and the list of recent files are stored; empty: the system's folder for settings.
  // Preconditions (caller): the backend outlives the window; load_fonts() was called.
  explicit MainWindow(Backend& backend, const QString& folder = {}, QWidget* parent = nullptr);
  ~MainWindow() override;

  // Also the results of a lab (kvscope lab check --json): the lab's scenario is opened at the first failing test. A
  // kernel (PTX) is opened in a window of its own.
  void open(const QString& path, const OpenWish& wish = {});
  void open_lab(const LabEntry& lab);
  void close_document();
  void set_view(View view);
  void set_theme(ThemeSetting setting);
  void set_font_scale(double scale);
  void set_motion(bool on);

  [[nodiscard]] Document* document() const { return document_.get(); }  // null: the start page is shown
  [[nodiscard]] View view() const { return view_; }
  [[nodiscard]] ThemeKind theme_now() const { return theme_->kind; }
  [[nodiscard]] const Actions& actions() const { return actions_; }
  [[nodiscard]] MessageBar& messages() const { return *messages_; }
  [[nodiscard]] Canvas& canvas() const { return *canvas_; }
  [[nodiscard]] WhyPanel& why() const { return *why_; }

 protected:
  bool event(QEvent* event) override;
  void closeEvent(QCloseEvent* event) override;
  void dragEnterEvent(QDragEnterEvent* event) override;
  void dropEvent(QDropEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;
  void moveEvent(QMoveEvent* event) override;
  bool eventFilter(QObject* watched, QEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;  // keys of a disabled zoom action: the status bar shows why it is
  // The Tab key: from widget to widget that can be seen. Docks behind the front tab have their places outside the
  // window, and Qt would step through them.
  bool focusNextPrevChild(bool next) override;

 private:
  // main_window.cpp
  void build_center();
  void build_docks();
  void build_status();
  void show_docks(bool shown);
  void update_titles();
  QDockWidget* add_dock(const QString& name, QWidget* content, Do action);
  void show_document();
  void show_status();
  void connect_document(const std::shared_ptr<const Facts>& facts);

  // main_window_actions.cpp
  void build_menus();
  void build_view_menu(QMenu& menu);
  void connect_actions();
  void connect_run_actions();
  void connect_view_actions();
  void let_go();
  void toggle_dock(QDockWidget& dock, QAction& action);

  // main_window_ways.cpp
  void connect_ways();
  void visited();     // to be called when the position, the selection or the view changed
  void keep_place();  // adds the current place to the history
  void go(const HistoryPlace& place);
  void show_ways();
  void show_zoom();  // enables the zoom actions, or shows why they are off
  // The widget of the area that had the focus last, else the first that can have it; null if there is none.
  [[nodiscard]] static QWidget* focus_of(QWidget& area);
  [[nodiscard]] std::vector<QWidget*> areas() const;  // bars, docks and the picture, that are visible
  void focus_area(int by);

  // main_window_files.cpp
  void connect_files();
  void load(const QString& path, const OpenWish& wish);
  void open_kernel(const QString& path);
  void open_result(const LabResult& result, const QString& path);
  void show_scenario(const LabEntry& lab, const NoteLink& place);
  void show_lab_panel();  // when the file that was opened belongs to a lab
  void follow_place(const NotePart& place, const QString& scenario);
  void end_opening();
  void opened(const std::shared_ptr<const Run>& run, const QString& path);
  void open_failed(const QString& path, const QStringList& faults);
  void show_open_failed(const QString& path, const QStringList& faults);
  void show_remarks(const QString& topic, const QString& path, const std::vector<std::string>& remarks);
  void show_errors(const std::shared_ptr<const AttentionErrors>& errors);
  void apply(const OpenWish& wish);
  void apply_tile(const OpenWish& wish);
  void check_notes();
  void follow_note(const NotePart& link);
  [[nodiscard]] OpenWish wish_of_now() const;
  [[nodiscard]] OpenWish wish_by_step() const;  // the same for another run, whose events have other numbers
  void ask_for_file();
  void ask_for_candidate();
  void open_pair(const QStringList& files);

  // main_window_tour.cpp
  void connect_tour();
  void open_tour(bool from_the_start);
  void start_tour();  // to be called when a file was opened
  void show_tour_panel();
  void look_for_tour();  // to be called when the document changed

  // main_window_writing.cpp
  void connect_writing();
  void ask_where_to_save();
  void ask_where_to_export();
  void start_job(const QString& target, Job::Work work);

  // main_window_scenario.cpp
  void run_changed(const std::string& scenario);
  void show_draft();  // enables undo and redo, and marks the title while changes are not saved
  void restore_changes(const std::string& scenario);
  // Shows a message that leads back to them, at `place`; they are in the session as long as it is shown.
  void offer_changes(const QString& path, const std::string& scenario, const OpenWish& place = {});
  [[nodiscard]] static QString changes_topic(const QString& path);             // of that message
  [[nodiscard]] std::vector<std::pair<QString, QString>> unsaved_now() const;  // as SessionPlace::changes
  void ask_where_to_save_scenario();
  // `from`: the file that the scenario was opened from.
  void save_scenario(Scenario scenario, const QString& from, const QString& path);

  // main_window_compare.cpp
  void connect_compare();
  void compare_with(const QString& path);
  void ask_what_to_compare();
  void compared_opened(const std::shared_ptr<const Run>& run, const QString& path);
  void compare_failed(const QString& path, const QStringList& faults);
  void end_comparison();
  void compare();      // with the run that was opened for it, else with the file's
  void show_beside();  // to be called when there may be something else beside the picture
  void lay_out_boards();
  void halve_boards();
  [[nodiscard]] Canvas& canvas_meant() const;  // of two: the one under the pointer, else the one with the focus

  // main_window_look.cpp
  void apply_theme();
  void paint_gallery();
  void present(bool on);
  void show_caption();
  void offer_to_restore();
  void changed();  // to be called when a value stored in the session changed
  void keep_session();
  [[nodiscard]] SessionPlace place_now() const;

  Session session_;
  RecentFiles recent_;
  Backend& backend_;
  GalleryModel gallery_;
  const Labs labs_;
  Actions& actions_;  // a child
  std::shared_ptr<const Run> run_;
  std::unique_ptr<Document> document_;
  View view_ = View::overview;
  ThemeSetting theme_setting_;
  const Theme* theme_;
  double font_scale_;
  OpenWish wish_;            // of the file that is being opened
  bool lab_wanted_ = false;  // the next file that opens belongs to the lab that the panel shows
  Tour tour_;
  QString tour_path_;                    // its scenario; empty: the gallery has none
  bool tour_wanted_ = false;             // the tour starts when its scenario is open
  QString lab_file_;                     // the results that the lab panel shows; empty: none
  QString failed_;                       // the file that failed to open, if no other is open: Reload tries it again
  std::optional<SessionPlace> offered_;  // the state offered for restoring, until the offer is accepted or dismissed
  std::vector<std::pair<QString, std::string>> unsaved_;  // that were offered: a scenario's file, and its changed text
  std::shared_ptr<const Run> file_run_;                   // while a changed scenario is shown: of its file; else null
  std::shared_ptr<const Run> compared_run_;               // opened to compare with; null: none
  QString compared_path_;                                 // its file
  bool beside_ = false;                                   // the compared run is to be shown beside the other
  std::vector<Breakpoint> breakpoints_;                   // passed from document to document
  QString job_target_;
  QString remarked_;      // the candidate whose remarks were shown last
  QTimer session_timer_;  // the session is saved when it times out
  QTimer gallery_timer_;  // the pictures of the gallery are painted when it times out
  History history_;
  QTimer history_timer_;  // a place is kept when it times out: one for all changes of one action

  QStackedWidget* center_ = nullptr;
  QSplitter* boards_ = nullptr;
  CanvasScroll *scroll_ = nullptr, *beside_scroll_ = nullptr;
  StartPage* start_page_ = nullptr;
  Canvas *canvas_ = nullptr, *beside_canvas_ = nullptr;
  Overlay* overlay_ = nullptr;
  MessageBar* messages_ = nullptr;
  FindBar* find_bar_ = nullptr;
  ExportBar* export_bar_ = nullptr;
  TileBar* tile_bar_ = nullptr;
  AttentionBar* attention_bar_ = nullptr;
  CompareBar* compare_bar_ = nullptr;
  BusyBar *load_bar_ = nullptr, *job_bar_ = nullptr;
  TransportBar* transport_ = nullptr;
  WhyPanel* why_ = nullptr;
  EventsPanel* events_ = nullptr;
  SequencesPanel* sequences_ = nullptr;
  BreakpointsPanel* breakpoints_panel_ = nullptr;
  NotesPanel* notes_ = nullptr;
  ScenarioPanel* scenario_panel_ = nullptr;
  LabPanel* lab_panel_ = nullptr;
  TourPanel* tour_panel_ = nullptr;
  Caption* caption_ = nullptr;
  std::unique_ptr<Presentation> presentation_;
  std::vector<QPointer<KernelWindow>> kernels_;
  std::vector<QDockWidget*> docks_;
  std::vector<DockTitle*> titles_;
  DockTabs* tabs_ = nullptr;
  QByteArray dock_state_;  // layout of the docks while the start page hides them
  bool docks_shown_ = true;
  bool pinned_last_ = false;  // the selection changed after the hovered object
  StatusLine* what_ = nullptr;
  QLabel* when_ = nullptr;
  QActionGroup *view_group_ = nullptr, *theme_group_ = nullptr;

  // Last members: their destructors wait for threads that use the members above.
  Asker asker_;
  Loader loader_;
  Job job_;
  GalleryPictures pictures_;
};

}  // namespace kvscope::viz
