// Lesson 6: from data to batches.
#include <fornax/fornax.h>

#include "claim.h"

using namespace fornax;

// A dataset is anything with size() and get(i).
struct Squares {
  int64_t size() const { return 10; }
  data::Example get(int64_t i) const { return {full({1}, double(i)), full({1}, double(i * i))}; }
};

int main() {
  // Batches are prepared on threads, ahead of their use, in an order that does not depend on them.
  const data::Loader loader(Squares{}, {.batch_size = 4, .workers = 2});
  claim(loader.batches() == 3);
  std::vector<float> sums;
  for (const data::Batch& batch : loader.epoch(0))
    sums.push_back(batch.targets.sum().item<float>());
  claim(sums == std::vector<float>{0 + 1 + 4 + 9, 16 + 25 + 36 + 49, 64 + 81});

  // Shuffling depends on the seed and the epoch's number, so a run can be taken up again.
  const data::Loader shuffled(Squares{}, {.batch_size = 4, .shuffle = true, .seed = 7});
  claim(shuffled.order(0) != shuffled.order(1));
  claim(shuffled.order(1) == shuffled.order(1));

  // map() changes examples as they are asked for, on the loader's threads.
  const auto halved = data::map(Squares{}, [](data::Example example) {
    return data::Example{example.input / 2, example.target};
  });
  claim(halved.get(8).input.item<float>() == 4);

  // Tensors that are in memory already are a dataset, too.
  const data::InMemory points(arange(6).reshape({3, 2}), arange(3));
  claim(points.get(1).input.to_vector<int64_t>() == std::vector<int64_t>{2, 3});
}
