// Programs that serve rows: started, asked through pipes, ended.
#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <ctime>
#include <filesystem>
#include <stdexcept>

#include "bench/cpu/cpu.h"

namespace bench {

Party::Party(std::string its_name, std::vector<std::string> its_command,
             std::vector<std::string> its_environment)
    : name(std::move(its_name)),
      command(std::move(its_command)),
      environment(std::move(its_environment)) {}

Party::Party(Party&& other) noexcept
    : name(std::move(other.name)),
      command(std::move(other.command)),
      environment(std::move(other.environment)),
      process_(std::exchange(other.process_, 0)),
      input_(std::exchange(other.input_, -1)),
      output_(std::exchange(other.output_, -1)) {}

Party::~Party() { end(); }

void Party::start() {
  std::signal(SIGPIPE, SIG_IGN);  // one that died says so by ending its output
  int to[2], back[2];
  if (pipe2(to, O_CLOEXEC) != 0 || pipe2(back, O_CLOEXEC) != 0) {
    throw std::runtime_error("no pipe for " + name);
  }
  std::vector<char*> words;
  for (std::string& word : command) words.push_back(word.data());
  words.push_back(nullptr);
  process_ = fork();
  if (process_ == 0) {
    dup2(to[0], 0);
    dup2(back[1], 1);
    dup2(open("/dev/null", O_WRONLY), 2);  // what matters is in the answers
    for (std::string& entry : environment) putenv(entry.data());
    execvp(words[0], words.data());
    _exit(127);
  }
  close(to[0]);
  close(back[1]);
  input_ = to[1];
  output_ = back[0];
  received_.clear();
}

void Party::end() {
  if (process_ <= 0) return;
  kill(process_, SIGKILL);
  waitpid(process_, nullptr, 0);
  close(input_);
  close(output_);
  process_ = 0;
}

double Party::processor_seconds() const {
  clockid_t clock;
  timespec time{};
  if (process_ <= 0 || clock_getcpuclockid(process_, &clock) != 0) return 0;
  clock_gettime(clock, &time);
  return double(time.tv_sec) + double(time.tv_nsec) * 1e-9;
}

void Party::send(const std::string& request) {
  if (process_ <= 0) start();
  const std::string line = request + "\n";
  // Requests are shorter than a pipe's buffer; one that cannot be written is missed by receive().
  if (write(input_, line.data(), line.size()) != ssize_t(line.size()))
    close(std::exchange(input_, -1));
}

Json Party::receive(double patience) {
  const double until = seconds() + patience;
  for (size_t end_of_line; (end_of_line = received_.find('\n')) == std::string::npos;) {
    pollfd wait{.fd = output_, .events = POLLIN, .revents = 0};
    const double left = until - seconds();
    char buffer[65536];
    const bool more = left > 0 && poll(&wait, 1, int(left * 1e3) + 1) > 0;
    const ssize_t count = more ? read(output_, buffer, sizeof buffer) : 0;
    if (count <= 0) {
      end();
      return {{"error", more ? "it ended" : fmt::format("no answer in {:.0f} s", patience)}};
    }
    received_.append(buffer, size_t(count));
  }
  const size_t length = received_.find('\n');
  Json answer = Json::parse(received_.substr(0, length), nullptr, false);
  received_.erase(0, length + 1);
  if (!answer.is_object()) answer = {{"error", "it answers what is no object"}};
  return answer;
}

Json Party::ask(const std::string& request, double patience) {
  send(request);
  return receive(patience);
}

std::vector<Party> parties(const std::string& self, int threads) {
  const std::string count = std::to_string(threads);
  const std::string home = "build/peers/", python = home + "venv/bin/python";
  const std::vector<std::string> ours{"FORNAX_THREADS=" + count};
  std::vector<Party> list;
  list.emplace_back("fornax", std::vector<std::string>{self, "--serve", "fornax"}, ours);
  list.emplace_back("without_onednn", list[0].command,
                    std::vector<std::string>{ours[0], "FORNAX_ONEDNN=0"});
  const auto rows = [&](std::vector<std::string> program, std::vector<std::string> more = {}) {
    program.insert(program.end(), {"--work", "rows", "--threads", count});
    program.insert(program.end(), more.begin(), more.end());
    return program;
  };
  if (std::filesystem::exists(python)) {
    const std::string cache = "TORCHINDUCTOR_CACHE_DIR=" + home + "inductor";
    list.emplace_back("torch", rows({python, "bench/peers/peer_torch.py"}));
    list.emplace_back("compile", rows({python, "bench/peers/peer_torch.py"}, {"--compile"}),
                      std::vector<std::string>{cache});
    list.emplace_back("jax", rows({python, "bench/peers/peer_jax.py"}));
  }
  for (const char* name : {"burn", "candle"}) {
    const std::string program = fmt::format("{}target/release/peer-{}", home, name);
    if (std::filesystem::exists(program)) list.emplace_back(name, rows({program}));
  }
  for (const char* library : {"onednn", "openblas"}) {
    list.emplace_back(
        library, std::vector<std::string>{self, "--serve", library},
        std::vector<std::string>{"OMP_NUM_THREADS=" + count, "OPENBLAS_NUM_THREADS=" + count});
  }
  return list;
}

}  // namespace bench
