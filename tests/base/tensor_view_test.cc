#include "guard/base/tensor_view.h"

#include <gtest/gtest.h>

#include <vector>

namespace attnguard {
namespace {

TEST(TensorView, ReadsTheSameElementsInAnyLayout) {
  const Shape4 shape = {2, 3, 4, 5};
  // bhsd, bshd, sbhd, and one with gaps and spread channels.
  for (const Shape4& strides : {contiguous_strides(shape), Shape4{60, 5, 15, 1},
                                Shape4{15, 5, 30, 1}, Shape4{200, 60, 13, 2}}) {
    std::vector<double> memory(500, -1);
    const TensorView view = {reinterpret_cast<std::byte*>(memory.data()),
                             Dtype::kFp64, shape, strides};
    for (std::int64_t b = 0; b < 2; ++b)
      for (std::int64_t h = 0; h < 3; ++h)
        for (std::int64_t s = 0; s < 4; ++s) {
          double row[5];
          for (int c = 0; c < 5; ++c)
            row[c] = static_cast<double>(((b * 3 + h) * 4 + s) * 5 + c);
          view.store_row(b, h, s, 0, 5, row);
        }
    const ConstTensorView reading = view;
    double part[2];
    reading.load_row(1, 2, 3, 2, 2, part);
    EXPECT_EQ(part[0], 117);
    EXPECT_EQ(part[1], 118);
    EXPECT_EQ(memory[static_cast<std::size_t>(view.offset(0, 1, 2, 3))], 33);
  }
}

TEST(TensorView, ContiguousStridesFollowTheLogicalOrder) {
  EXPECT_EQ(contiguous_strides({2, 3, 4, 5}), (Shape4{60, 20, 5, 1}));
}

}  // namespace
}  // namespace attnguard
