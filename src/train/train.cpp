// Averages, Ctrl-C and progress.
#include <fornax/train.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdlib>

#include "base/error.h"

namespace fornax::train {
namespace {

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Seconds between redraws of a bar.
constexpr double kRedraw = 0.1;

void write_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = write(descriptor, text.data(), text.size());
    if (count <= 0) return;  // a closed pipe must not end a training run
    text.remove_prefix(size_t(count));
  }
}

std::string duration(double seconds) {
  const int64_t whole = int64_t(std::min(seconds + 0.5, 359999.0));
  if (whole >= 3600)
    return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
  return fmt::format("{}:{:02}", whole / 60, whole % 60);
}

volatile std::sig_atomic_t interrupted = 0;
std::atomic<bool> listening = false;
struct sigaction before_listening;

void on_interrupt(int) {
  if (interrupted) {  // the user insists
    signal(SIGINT, SIG_DFL);
    raise(SIGINT);
  }
  interrupted = 1;
}

}  // namespace

void Average::add(const Tensor& value, double weight, Site site) {
  const Call call("average", site);
  const Tensor part = value.detach() * weight;
  sum_ = sum_.defined() ? sum_ + part : part;
  weight_ += weight;
}

double Average::value(Site site) const {
  return sum_.defined() ? sum_.item<double>(site) / weight_ : std::nan("");
}

Interrupt::Interrupt(Site site) {
  const Call call("interrupt", site);
  if (listening.exchange(true)) {
    fail(ErrorKind::value, "interrupt: another one lives; keep one per process");
  }
  interrupted = 0;
  struct sigaction action = {};
  action.sa_handler = on_interrupt;
  action.sa_flags = SA_RESTART;
  sigaction(SIGINT, &action, &before_listening);
}

Interrupt::~Interrupt() {
  sigaction(SIGINT, &before_listening, nullptr);
  listening = false;
}

bool Interrupt::requested() const { return interrupted != 0; }

int terminal_width(int descriptor) {
  if (!isatty(descriptor)) return 0;
  winsize size = {};
  const bool known = ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? size.ws_col : 80;
}

Progress::Progress(std::string label, int64_t total, ProgressOptions o)
    : label_(std::move(label)),
      total_(total),
      options_(std::move(o)),
      start_(now()),
      shown_(start_),
      terminal_(terminal_width(options_.descriptor) > 0) {}

Progress::~Progress() {
  if (open_) write_all(options_.descriptor, "\n");
}

double Progress::seconds() const { return now() - start_; }

bool Progress::due() const { return now() - shown_ >= (terminal_ ? kRedraw : options_.every); }

void Progress::show(int64_t done, std::string_view note) {
  if (!due()) return;
  shown_ = now();
  if (terminal_) {
    const int width = terminal_width(options_.descriptor);
    write_all(options_.descriptor, "\r" + line(done, seconds(), note, width - 1, true) + "\x1b[K");
    open_ = true;
  } else {
    write_all(options_.descriptor, line(done, seconds(), note, 1000, false) + "\n");
  }
}

void Progress::finish(int64_t done, std::string_view note) {
  const std::string text = line(done, seconds(), note, 1000, false);
  write_all(options_.descriptor, terminal_ ? "\r" + text + "\x1b[K\n" : text + "\n");
  open_ = false;
}

std::string Progress::line(int64_t done, double seconds, std::string_view note, int width,
                           bool bar) const {
  const double share = total_ > 0 ? std::clamp(double(done) / double(total_), 0.0, 1.0) : 1;
  const double rate = seconds > 0 ? double(done) / seconds : 0;
  std::string tail = note.empty() ? "" : fmt::format("  {}", note);
  tail += fmt::format("  {:.0f} {}/s", rate, options_.unit);
  if (done >= total_) {
    tail += fmt::format("  {:.1f} s", seconds);
  } else if (done > 0) {
    tail += fmt::format("  {} left", duration(seconds / share - seconds));
  }
  std::string text = fmt::format("{} {:3.0f}%", label_, std::floor(share * 100));
  const int room = std::min(30, width - int(text.size() + tail.size()) - 3);
  if (bar && room >= 5) {
    const int full = int(share * room);
    text += " [";
    for (int i = 0; i < room; i++) text += i < full ? "=" : i == full ? ">" : " ";
    text += "]";
  }
  return (text + tail).substr(0, size_t(std::max(width, 0)));
}

}  // namespace fornax::train
