// Lesson 2: parts of tensors, read and replaced.
#include <fornax/fornax.h>

#include "claim.h"

using namespace fornax;

int main() {
  const Tensor x = arange(12).reshape({3, 4});  // 0 1 2 3 / 4 5 6 7 / 8 9 10 11

  // Positions drop an axis; negative ones count from the end.
  claim(x(1, 2).item<int64_t>() == 6);
  claim(x(-1).to_vector<int64_t>() == std::vector<int64_t>{8, 9, 10, 11});

  // Slices keep it: from, to (exclusive), step.
  claim(x(slice(), slice(0, 4, 2)).shape() == Shape{3, 2});
  claim(x(0, slice(none, none, -1)).to_vector<int64_t>() == std::vector<int64_t>{3, 2, 1, 0});
  claim(x(ellipsis, 0).to_vector<int64_t>() == std::vector<int64_t>{0, 4, 8});
  claim(x(new_axis).shape() == Shape{1, 3, 4});

  // Tensors pick positions, masks pick elements.
  claim(x(tensor({2, 0})).to_vector<int64_t>()[0] == 8);
  claim(x(x > 9).to_vector<int64_t>() == std::vector<int64_t>{10, 11});

  // Assigning to a part rebinds the handle to a copy with other elements; other handles keep
  // theirs.
  Tensor y = x;
  y.at(0) = -1;
  claim(y(0).to_vector<int64_t>() == std::vector<int64_t>{-1, -1, -1, -1});
  claim(x(0, 0).item<int64_t>() == 0);

  // gather and scatter work along one axis; index repeats add up.
  const Tensor counts =
      zeros({3}, {DType::i64}).scatter_add(0, tensor({0, 2, 2}), ones({3}, {DType::i64}));
  claim(counts.to_vector<int64_t>() == std::vector<int64_t>{1, 0, 2});
}
