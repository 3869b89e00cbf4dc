// Serving rows: by Fornax, or by a library of products.
#include <cstdio>
#include <iostream>
#include <memory>
#include <sstream>

#include "backends/flex/pool.h"
#include "bench/cpu/cpu.h"

namespace bench {
namespace {

// A row made: a call whose results are there when it returns, and how its outputs are come by.
struct Made {
  std::function<void()> call;
  std::function<std::vector<Summary>()> check = [] { return std::vector<Summary>{}; };
};

Made make_fork_join() {
  return {.call = [] {
    const int threads = fornax::flex::thread_count();
    for (int i = 0; i < 1000; i++) fornax::flex::parallel(threads, 1, [](int64_t, int64_t) {});
  }};
}

Made make_fornax(const Work& work, Device device) {
  if (work.op == "fork_join") return make_fork_join();
  if (const auto floor = make_floor(work)) return {.call = floor};
  const Call call = make(work, device);
  Made made;
  made.call = [=] {
    const std::vector<Tensor> results = call(0);
    device.sync();
  };
  made.check = [=] {
    std::vector<Summary> outputs;
    for (const Tensor& output : checked(work, call, device)) outputs.push_back(summary(output));
    return outputs;
  };
  return made;
}

Made make_product(const Product& product, const Work& work) {
  struct Operands {
    std::vector<float> a, b, c;
  };
  const int64_t m = work.shape[0], k = work.shape[1], n = work.shape[2];
  const auto operands = std::make_shared<Operands>(Operands{
      .a = values(0, {m, k}, DType::f32, "cpu").to_vector<float>(),
      .b = values(16, {k, n}, DType::f32, "cpu").to_vector<float>(),
      .c = std::vector<float>(size_t(m * n)),
  });
  Made made;
  made.call = [=] { product(m, k, n, operands->a.data(), operands->b.data(), operands->c.data()); };
  made.check = [=, call = made.call] {
    call();
    return std::vector{summary(from(operands->c, Device("cpu")))};
  };
  return made;
}

class Server {
 public:
  Server(std::string who, const std::string& device) : who_(std::move(who)), device_(device) {
    if (who_ != "fornax") product_ = open_product(who_);
  }

  Json answer(const std::string& line) {
    std::istringstream words(line);
    std::string verb;
    words >> verb;
    try {
      if (verb == "make") return make_row(words);
      if (verb == "first") return first(words);
      if (verb == "run") return run(words);
      if (verb == "drop") return made_.reset(), Json{{"dropped", true}};
    } catch (const std::exception& error) {
      made_.reset();
      return {{"error", error.what()}};
    }
    return {{"error", "unknown request: " + line}};
  }

 private:
  // False: the row is not for us.
  bool take(std::istringstream& words) {
    made_.reset();
    device_.sync();
    Work work;
    words >> work.op;
    for (int64_t size; words >> size;) work.shape.push_back(size);
    if (who_ == "fornax") {
      made_ = make_fornax(work, device_);
    } else if (product_ && work.op == "matmul_nn") {
      made_ = make_product(product_, work);
    }
    return made_.has_value();
  }

  Json make_row(std::istringstream& words) {
    if (!take(words)) return {{"absent", true}};
    Json all = Json::array();
    for (const Summary& output : made_->check()) {
      all.push_back({{"count", output.count},
                     {"sum", output.sum},
                     {"squares", output.squares},
                     {"samples", output.samples}});
    }
    made_->call();
    return {{"outputs", all}};
  }

  Json first(std::istringstream& words) {
    const double begin = seconds();
    if (!take(words)) return {{"absent", true}};
    const double making = seconds() - begin;
    made_->call();
    return {{"making", making}};
  }

  Json run(std::istringstream& words) {
    int samples = 1, calls = 1;
    words >> samples >> calls;
    std::vector<double> times;
    for (int i = 0; i < samples; i++) {
      const double begin = seconds();
      for (int k = 0; k < calls; k++) made_.value().call();
      times.push_back((seconds() - begin) / calls);
    }
    return {{"seconds", median(times)}};
  }

  const std::string who_;
  const Device device_;
  Product product_;
  std::optional<Made> made_;
};

}  // namespace

int serve(const std::string& who, const std::string& device) {
  Server server(who, device);
  std::string line;
  while (std::getline(std::cin, line)) {
    std::printf("%s\n", server.answer(line).dump().c_str());
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace bench
