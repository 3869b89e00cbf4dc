// The commands of the program.  Each returns the exit status.
#pragma once
#include <fornax/data.h>

#include <cstdint>
#include <string>

namespace cli {

struct TrainOptions {
  std::string device;  // empty: the default one
  std::string data = fornax::data::kFashionMnistFolder;
  std::string save = "fashion-mnist.safetensors";
  int64_t epochs = 5;
  int64_t batch = 128;
  int64_t steps = 0;  // stop after so many; 0: go on to the end
  int workers = 1;
  uint64_t seed = 0;
  double learning_rate = 2e-3;
  bool resume = false;
};
// 0 also when stopped by Ctrl-C or by `steps`; 1 when the saved model does not repeat its accuracy.
int train_fashion_mnist(const TrainOptions& options);

// Pictures side by side with a line of text under each, as many as fit.
struct Caption {
  int64_t picture;
  std::string text;
  bool good;  // drawn green, else red, where there are colours
};
void draw(const fornax::data::Pictures& pictures, const std::vector<Caption>& captions);

int doctor();

// What is kept of compiled code.
int list_cache();
int clear_cache();
int export_cache(const std::string& path);
int import_cache(const std::string& path);

}  // namespace cli
