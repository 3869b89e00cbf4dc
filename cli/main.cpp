// fornax: the command-line program.
#include <fornax/fornax.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdio>

#include "cli/commands.h"

namespace {

// Whole numbers of a range that can be read, unlike those of CLI11.
CLI::Validator whole(int64_t least, int64_t most) {
  const std::string range = "from " + std::to_string(least) + " to " + std::to_string(most);
  const auto complaint = [=](const std::string& text) -> std::string {
    int64_t value = 0;
    if (CLI::detail::lexical_cast(text, value) && value >= least && value <= most) return {};
    return text + " is not a whole number " + range;
  };
  return {complaint, range};
}

std::string not_positive(const std::string& text) {
  double value = 0;
  if (CLI::detail::lexical_cast(text, value) && value > 0 && std::isfinite(value)) return {};
  return text + " is not a number above 0";
}

constexpr int64_t kMost = 1'000'000'000;  // of epochs and pictures: their product is an int64

void add_train(CLI::App& app, cli::TrainOptions& o) {
  CLI::App* train = app.add_subcommand("train", "train a model");
  train->require_subcommand(1);
  CLI::App* fashion = train->add_subcommand(
      "fashion-mnist", "a convolutional network on 60,000 pictures of clothes");
  fashion->add_option("--device", o.device, "where to train, \"cpu\" for one");
  fashion->add_option("--epochs", o.epochs, "passes over the data")
      ->check(whole(1, kMost))
      ->capture_default_str();
  fashion->add_option("--batch", o.batch, "pictures per step")
      ->check(whole(1, kMost))
      ->capture_default_str();
  fashion->add_option("--seed", o.seed, "of the first weights and the order of pictures")
      ->capture_default_str();
  fashion->add_option("--lr", o.learning_rate, "learning rate at the start; falls to 0 by a cosine")
      ->check(CLI::Validator(not_positive, "above 0"))
      ->capture_default_str();
  fashion->add_option("--data", o.data, "folder of the data set")->capture_default_str();
  fashion->add_option("--save", o.save, "file for the trained weights")->capture_default_str();
  fashion->add_option("--steps", o.steps, "stop after so many steps")->check(whole(0, kMost));
  fashion->add_option("--workers", o.workers, "threads that prepare batches")
      ->check(whole(0, 1024))
      ->capture_default_str();
  fashion->add_flag("--resume", o.resume, "go on from the checkpoint beside --save");
}

// Its commands run as they are read.
void add_cache(CLI::App& app, std::string& path, int& status) {
  CLI::App* cache = app.add_subcommand("cache", "compiled code that is kept for the next process");
  cache->require_subcommand(1);
  const auto add = [&](const char* name, const char* words, auto run) {
    CLI::App* command = cache->add_subcommand(name, words);
    command->final_callback([&status, run] { status = run(); });
    return command;
  };
  add("list", "what there is, the most recently used first", cli::list_cache);
  add("clear", "forget all of it", cli::clear_cache);
  add("export", "write it to a file", [&path] { return cli::export_cache(path); })
      ->add_option("file", path, "the file to write")
      ->required();
  add("import", "take what a file has", [&path] { return cli::import_cache(path); })
      ->add_option("file", path, "a file that export wrote")
      ->required();
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Fornax: deep learning for C++");
  app.set_version_flag("--version", fornax::kVersion);
  app.require_subcommand(1);
  cli::TrainOptions train;
  add_train(app, train);
  app.add_subcommand("doctor", "what is installed and how it will run");
  std::string cache_file;
  int status = 0;
  add_cache(app, cache_file, status);
  try {
    CLI11_PARSE(app, argc, argv);
    if (app.got_subcommand("cache")) return status;
    return app.got_subcommand("doctor") ? cli::doctor() : cli::train_fashion_mnist(train);
  } catch (const std::exception& error) {
    std::fflush(stdout);
    std::fprintf(stderr, "fornax: %s\n", error.what());
    return 1;
  }
}
