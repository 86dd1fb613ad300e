//===- GPTQ.cpp - Codes that make up for each other's errors --------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Frantar et al., "GPTQ: Accurate Post-Training Quantization for Generative
// Pre-trained Transformers", 2023. The error of an input's code is made up for
// by the inputs that have none yet, as the mean G of x xᵀ over calibration data
// says: with inv(G) = Uᵀ U, U upper triangular, row j of U, divided by its
// diagonal, is what optimal brain quantization (OBQ) would take from the
// inputs behind j. The rows of the weight are independent.
//
// Inputs are taken in blocks, as the paper does: within a block every error is
// spread at once, behind it the errors of the whole block together. A group's
// grid is chosen from what its inputs have become; where the order is another
// one (`act-order`), in which a group's inputs do not follow each other, from
// what they were.
//
//===----------------------------------------------------------------------===//
#include "passes/Compress/AffineGrid.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <numeric>

// LAPACK; matrices are column major, so that its lower triangle is our upper.
extern "C" {
void dpotrf_(const char *uplo, const int *n, double *a, const int *lda,
             int *info);
void dpotri_(const char *uplo, const int *n, double *a, const int *lda,
             int *info);
}

namespace mlir::llm {

static constexpr int64_t kInputBlock = 128;

namespace {
/// The order of a matrix's inputs and what their errors take from the others.
struct ErrorSpread {
  std::vector<int64_t> order;
  /// [columns][columns], the upper triangle: U for the inputs in order.
  std::vector<double> factor;
  /// Inputs that are always zero: their weights do not matter, and become 0.
  std::vector<bool> dead;
};

/// A block of rows on its way to codes.
class RowSweep {
public:
  RowSweep(const QuantizationRequest &request, const ErrorSpread &spread,
           QuantizedMatrix &out, int64_t first, int64_t count);
  /// Whether f16 does for the scales.
  bool run();

private:
  /// Quantizes the inputs [begin, end) of the order.
  void quantizeBlock(int64_t begin, int64_t end);
  void spreadErrors(int64_t begin, int64_t end);
  double *weights(int64_t row) { return ordered.data() + row * columns; }
  void chooseGrids(int64_t group);

  const QuantizationRequest &request;
  const ErrorSpread &spread;
  int64_t columns, count;
  std::vector<float> original;   ///< [count][paddedColumns()]
  std::vector<double> ordered;   ///< [count][columns], less errors so far
  std::vector<double> errors;    ///< [count][kInputBlock]
  std::vector<AffineRow> rows;   ///< [count]
  std::vector<AffineGrid> grids; ///< [count][parts()]
};
} // namespace

/// The inverse's factor; false where `gram` is not positive definite.
static bool invertAndFactor(std::vector<double> &gram, int64_t columns) {
  auto n = static_cast<int>(columns);
  int info = 0;
  dpotrf_("L", &n, gram.data(), &n, &info);
  if (info != 0)
    return false;
  dpotri_("L", &n, gram.data(), &n, &info);
  if (info != 0)
    return false;
  // In column-major order inv(G) = L Lᵀ; its lower triangle, read by rows, is
  // the upper one, and Lᵀ is U.
  dpotrf_("L", &n, gram.data(), &n, &info);
  return info == 0;
}

static ErrorSpread makeSpread(const QuantizationRequest &request) {
  int64_t n = request.columns;
  double largest = 0;
  for (int64_t i = 0; i < n; ++i)
    largest = std::max(largest, request.gram[i * n + i]);
  // Only ratios count; the elements are at most 1 then.
  auto at = [&](int64_t i, int64_t j) {
    return largest > 0 ? request.gram[i * n + j] / largest : 0;
  };
  ErrorSpread spread;
  spread.order.resize(n);
  std::iota(spread.order.begin(), spread.order.end(), 0);
  if (request.actOrder)
    std::sort(spread.order.begin(), spread.order.end(),
              [&](int64_t a, int64_t b) {
                return std::pair(-at(a, a), a) < std::pair(-at(b, b), b);
              });
  spread.dead.resize(n);
  double trace = 0;
  for (int64_t i = 0; i < n; ++i) {
    spread.dead[i] = at(i, i) == 0;
    trace += at(i, i);
  }
  double mean = trace > 0 ? trace / static_cast<double>(n) : 1;
  // From little data the matrix is singular, and rounding may do the rest: it
  // is positive definite at the latest when the diagonal is what counts.
  for (double damping = request.damping;;
       damping = std::max(damping * 10, 1e-8)) {
    spread.factor.assign(n * n, 0);
    for (int64_t i = 0; i < n; ++i) {
      int64_t from = spread.order[i];
      double *row = spread.factor.data() + i * n;
      for (int64_t j = i; j < n; ++j)
        row[j] = at(from, spread.order[j]);
      row[i] += spread.dead[from] ? mean : damping * mean;
    }
    if (invertAndFactor(spread.factor, n))
      return spread;
  }
}

RowSweep::RowSweep(const QuantizationRequest &request,
                   const ErrorSpread &spread, QuantizedMatrix &out,
                   int64_t first, int64_t count)
    : request(request), spread(spread), columns(request.columns), count(count),
      original(count * request.paddedColumns()), ordered(count * columns),
      errors(count * kInputBlock), grids(count * request.parts()) {
  request.read(first, count, original.data());
  for (int64_t r = 0; r < count; ++r) {
    rows.emplace_back(request, out, first + r);
    float *from = original.data() + r * request.paddedColumns();
    for (int64_t j = 0; j < columns; ++j) {
      float &value = from[spread.order[j]];
      if (spread.dead[spread.order[j]])
        value = 0;
      weights(r)[j] = value;
    }
  }
}

static float toFloat(double value) {
  constexpr double kMost = std::numeric_limits<float>::max();
  return static_cast<float>(std::clamp(value, -kMost, kMost));
}

/// Chooses the grids of a group from `original`.
void RowSweep::chooseGrids(int64_t group) {
  int64_t each = request.partsOfGroup();
  for (int64_t r = 0; r < count; ++r)
    rows[r].choose(group,
                   original.data() + r * request.paddedColumns() +
                       group * request.groupSize,
                   ::llvm::MutableArrayRef(grids).slice(
                       r * request.parts() + group * each, each));
}

void RowSweep::quantizeBlock(int64_t begin, int64_t end) {
  for (int64_t j = begin; j < end; ++j) {
    int64_t input = spread.order[j], group = input / request.groupSize;
    const double *factor = spread.factor.data() + j * columns;
    if (!request.actOrder && input % request.groupSize == 0) {
      int64_t last = std::min(columns, j + request.groupSize);
      for (int64_t r = 0; r < count; ++r)
        std::transform(weights(r) + j, weights(r) + last,
                       original.data() + r * request.paddedColumns() + j,
                       toFloat);
      chooseGrids(group);
    }
    for (int64_t r = 0; r < count; ++r) {
      const AffineGrid &grid =
          grids[r * request.parts() + input / request.partSize()];
      double *w = weights(r);
      double code = 0;
      if (grid.scale != 0)
        code = std::clamp<double>(std::nearbyint(w[j] / grid.scale), grid.low,
                                  grid.high);
      rows[r].code(input) =
          static_cast<uint8_t>(static_cast<int>(code) + grid.zeroPoint());
      double error = (w[j] - code * grid.scale) / factor[j];
      errors[r * kInputBlock + j - begin] = error;
      for (int64_t i = j + 1; i < end; ++i)
        w[i] -= error * factor[i];
    }
  }
}

void RowSweep::spreadErrors(int64_t begin, int64_t end) {
  // Some rows of U at a time, and as many columns as the first-level cache
  // holds of them.
  constexpr int64_t kRows = 8, kColumns = 256;
  for (int64_t low = end; low < columns; low += kColumns) {
    int64_t high = std::min(low + kColumns, columns);
    for (int64_t j = begin; j < end; j += kRows) {
      int64_t factors = std::min(kRows, end - j);
      for (int64_t r = 0; r < count; ++r) {
        double *w = weights(r);
        const double *error = errors.data() + r * kInputBlock + j - begin;
        for (int64_t k = 0; k < factors; ++k) {
          const double *factor = spread.factor.data() + (j + k) * columns;
          for (int64_t i = low; i < high; ++i)
            w[i] -= error[k] * factor[i];
        }
      }
    }
  }
}

bool RowSweep::run() {
  int64_t size = request.groupSize;
  if (request.actOrder)
    for (int64_t g = 0; g < request.groups(); ++g)
      chooseGrids(g);
  for (int64_t begin = 0, end = 0; begin < columns; begin = end) {
    end = std::min(begin + kInputBlock, columns);
    // A group's inputs must be what all errors before made of them when its
    // grid is chosen: one that does not end in the block begins the next one.
    int64_t whole = end / size * size;
    if (!request.actOrder && end < columns && whole > begin)
      end = whole;
    quantizeBlock(begin, end);
    spreadErrors(begin, end);
  }
  bool fits = true;
  for (AffineRow &row : rows) {
    row.store();
    fits = fits && row.fits();
  }
  return fits;
}

bool quantizeGPTQ(const QuantizationRequest &request, QuantizedMatrix &out) {
  allocate(request, out);
  ErrorSpread spread = makeSpread(request);
  std::atomic<bool> fits = true;
  int64_t blocks = (request.rows + kRowBlock - 1) / kRowBlock;
  request.parallelFor(blocks, [&](int64_t block) {
    int64_t first = block * kRowBlock;
    RowSweep sweep(request, spread, out, first,
                   std::min(kRowBlock, request.rows - first));
    if (!sweep.run())
      fits = false;
  });
  return fits;
}

} // namespace mlir::llm
