//===- Layouts.cpp - How packed weights lie in memory ---------------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/Kernels/Layouts.h"

#include "mlir/IR/Builders.h"
#include "llvm/Support/MathExtras.h"

#include <cstring>

namespace mlir::llm {

using EmitError = function_ref<InFlightDiagnostic()>;

static constexpr StringRef kKinds[] = {"rows",         "panel",
                                       "panel_affine", "rows_affine",
                                       "gpu_affine",   "panel_pairs"};

static int64_t bytesOf(Type type) { return type.getIntOrFloatBitWidth() / 8; }
static int64_t ceilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }
static int64_t alignUp(int64_t a, int64_t b) { return ceilDiv(a, b) * b; }

int64_t Layout::panels() const { return ceilDiv(n, kPanelBlock); }
int64_t Layout::groups() const { return ceilDiv(k, groupSize); }
int64_t Layout::groupLength(int64_t g) const {
  return std::min(groupSize, k - g * groupSize);
}
int64_t Layout::codeBytes(int64_t length) const {
  return ceilDiv(length, wordInputs()) * kPanelBlock * 4;
}
int64_t Layout::groupBytes(int64_t length) const {
  // Four bytes hold a scale beside its factors.
  int64_t scaleBytes = factorGroup ? 4 : bytesOf(scaleType);
  return codeBytes(length) +
         kPanelBlock * (scaleBytes + (zeroType ? bytesOf(zeroType) : 0));
}
int64_t Layout::panelBytes() const {
  int64_t last = groupLength(groups() - 1);
  return alignUp((groups() - 1) * groupBytes(groupSize) + groupBytes(last), 64);
}
int64_t Layout::rowCodeBytes() const {
  return alignUp(ceilDiv(k * bits, 8), 4);
}
int64_t Layout::rowBytes() const {
  return alignUp(rowCodeBytes() + groups() * 8, 64);
}

static int64_t oddLines(int64_t bytes) { return ceilDiv(bytes, 64) | 1; }
int64_t codeRowStride(int64_t k) { return oddLines(alignUp(k, 16)) * 64; }
int64_t pairRowStride(int64_t k) { return oddLines(alignUp(k, 2) * 2) * 32; }

GPUAffineLayout Layout::gpuAffine() const {
  return *GPUAffineLayout::get(n, k, bits, groupSize, zeroType != nullptr);
}

int64_t Layout::size() const {
  switch (kind) {
  case Kind::Rows:
    return n * k * bytesOf(type);
  case Kind::Panel:
    return panels() * k * kPanelBlock * bytesOf(type);
  case Kind::PanelAffine:
    return panels() * panelBytes();
  case Kind::RowsAffine:
    return n * rowBytes();
  case Kind::GPUAffine:
    return gpuAffine().words() * 4;
  case Kind::PanelPairs:
    return panels() * pairs() * 2 * kPanelBlock * bytesOf(type);
  }
  llvm_unreachable("covered switch");
}

Type Layout::elementType(MLIRContext *context) const {
  return isAffine() ? Type(IntegerType::get(context, 8)) : type;
}

int64_t Layout::elements() const {
  return isAffine() ? size() : size() / bytesOf(type);
}

FailureOr<Layout> Layout::parse(DictionaryAttr dict, EmitError emitError) {
  auto kindName = dict.getAs<StringAttr>("kind");
  const auto *kind =
      kindName ? llvm::find(kKinds, kindName.getValue()) : std::end(kKinds);
  if (kind == std::end(kKinds))
    return emitError() << "layout needs a kind: rows, panel, panel_affine, "
                          "rows_affine, gpu_affine or panel_pairs";
  Layout layout;
  layout.kind = static_cast<Kind>(kind - std::begin(kKinds));
  bool bad = false;
  auto integer = [&](StringRef name, int64_t low, int64_t high) {
    auto attr = dict.getAs<IntegerAttr>(name);
    if (attr && attr.getInt() >= low && attr.getInt() <= high)
      return attr.getInt();
    if (!bad)
      emitError() << "layout needs '" << name << "' in [" << low << ", " << high
                  << "]";
    bad = true;
    return int64_t(1);
  };
  auto real = [&](StringRef name) -> Type {
    auto attr = dict.getAs<TypeAttr>(name);
    Type type = attr ? attr.getValue() : Type();
    if (type && (type.isF32() || type.isF16() || type.isBF16()))
      return type;
    if (!bad)
      emitError() << "layout needs '" << name << "': f32, f16 or bf16";
    bad = true;
    return Float32Type::get(dict.getContext());
  };
  constexpr int64_t kMax = int64_t(1) << 31;
  layout.n = integer("n", 1, kMax);
  layout.k = integer("k", 1, kMax);
  if (auto transposed = dict.getAs<BoolAttr>("transposed"))
    layout.transposed = transposed.getValue();
  if (!layout.isAffine()) {
    layout.type = real("type");
    if (!bad && layout.kind == Kind::PanelPairs && !layout.type.isBF16()) {
      bad = true;
      emitError() << "layout panel_pairs is of bf16, not " << layout.type;
    }
  } else {
    layout.bits = integer("bits", 2, 8);
    layout.groupSize = integer("group_size", 1, kMax);
    layout.scaleType = real("scale_type");
    if (!bad && !llvm::isPowerOf2_64(layout.bits)) {
      bad = true;
      emitError() << "layout has bits = " << layout.bits << ", not 2, 4 or 8";
    }
    if (auto zero = dict.getAs<TypeAttr>("zero_type")) {
      layout.zeroType = zero.getValue();
      if (!bad && layout.zeroType != layout.scaleType &&
          !layout.zeroType.isUnsignedInteger(8)) {
        bad = true;
        emitError() << "layout has zero_type " << layout.zeroType
                    << ", not ui8 or its scales' type";
      }
    }
    if (dict.contains("factor_group")) {
      constexpr int64_t kMost = AffineGroupsFormatAttr::kMaxFactors;
      layout.factorGroup =
          integer("factor_group", 8, AffineGroupsFormatAttr::kMaxFactorGroup);
      if (!bad &&
          (layout.kind != Kind::PanelAffine || layout.bits != 4 ||
           layout.zeroType || !layout.scaleType.isF32() ||
           layout.factorGroup % 8 || layout.groupSize % layout.factorGroup ||
           layout.groupSize / layout.factorGroup > kMost)) {
        bad = true;
        emitError() << "layout has a factor_group: that needs panel_affine, "
                       "bits = 4, f32 scales, no zeros, and a group_size of up "
                       "to "
                    << kMost << " times a multiple of 8";
      }
    }
  }
  // Weights beyond 2^46 bytes are a mistake, and would overflow later.
  if (!bad && static_cast<double>(layout.n) * static_cast<double>(layout.k) >
                  static_cast<double>(int64_t(1) << 44)) {
    bad = true;
    emitError() << "layout of " << layout.n << " x " << layout.k
                << " elements is too large";
  }
  if (!bad && layout.kind == Kind::GPUAffine &&
      (!layout.scaleType.isF32() ||
       (layout.zeroType && !layout.zeroType.isF32()) ||
       !GPUAffineLayout::get(layout.n, layout.k, layout.bits, layout.groupSize,
                             layout.zeroType != nullptr)))
    return emitError() << "layout gpu_affine needs bits = 4, a group_size that "
                          "is a power of two of at least 16, and f32 scales "
                          "and zeros";
  if (bad)
    return failure();
  return layout;
}

DictionaryAttr Layout::toAttr(MLIRContext *context) const {
  Builder b(context);
  SmallVector<NamedAttribute> attrs;
  auto put = [&](StringRef name, Attribute value) {
    attrs.push_back(b.getNamedAttr(name, value));
  };
  put("kind", b.getStringAttr(kKinds[static_cast<int>(kind)]));
  put("n", b.getI64IntegerAttr(n));
  put("k", b.getI64IntegerAttr(k));
  if (transposed)
    put("transposed", b.getBoolAttr(true));
  if (isAffine()) {
    put("bits", b.getI64IntegerAttr(bits));
    put("group_size", b.getI64IntegerAttr(groupSize));
    if (factorGroup)
      put("factor_group", b.getI64IntegerAttr(factorGroup));
    put("scale_type", TypeAttr::get(scaleType));
    if (zeroType)
      put("zero_type", TypeAttr::get(zeroType));
  } else {
    put("type", TypeAttr::get(type));
  }
  return b.getDictionaryAttr(attrs);
}

int64_t packedSize(DictionaryAttr dict) {
  FailureOr<Layout> layout = Layout::parse(
      dict, [&] { return emitError(UnknownLoc::get(dict.getContext())); });
  return failed(layout) ? 0 : layout->size();
}

//===----------------------------------------------------------------------===//
// Elements
//===----------------------------------------------------------------------===//

static uint16_t toBF16(float value) {
  uint32_t bits = llvm::bit_cast<uint32_t>(value);
  if (value != value)
    return static_cast<uint16_t>((bits >> 16) | 0x40);
  return static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

namespace {
/// Reads one element of a component as f32.
struct Reader {
  const char *data = nullptr;
  Type type;

  float operator()(int64_t i) const {
    if (type.isF32()) {
      float value;
      std::memcpy(&value, data + i * 4, 4);
      return value;
    }
    if (type.isF64()) {
      double value;
      std::memcpy(&value, data + i * 8, 8);
      return static_cast<float>(value);
    }
    uint16_t bits;
    std::memcpy(&bits, data + i * 2, 2);
    if (type.isBF16())
      return llvm::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
    _Float16 half;
    std::memcpy(&half, &bits, 2);
    return half;
  }
};
} // namespace

static void writeElement(char *out, Type type, float value) {
  if (type.isF32()) {
    std::memcpy(out, &value, 4);
  } else if (type.isBF16()) {
    uint16_t bits = toBF16(value);
    std::memcpy(out, &bits, 2);
  } else {
    auto half = static_cast<_Float16>(value);
    std::memcpy(out, &half, 2);
  }
}

/// The component's bytes, after checking that they are what its type takes.
static FailureOr<::llm::WeightData>
open(WeightOp weight, ComponentAttr component, ::llm::WeightFiles *files) {
  FailureOr<::llm::WeightData> data = ::llm::WeightData::open(
      component, [&] { return weight.emitOpError(); }, files,
      /*verifyHash=*/true);
  if (failed(data))
    return failure();
  RankedTensorType type = component.getType();
  int64_t expected =
      ceilDiv(type.getNumElements() * type.getElementTypeBitWidth(), 8);
  if (static_cast<int64_t>(data->bytes().size()) < expected)
    return weight.emitOpError("component '")
           << component.getName() << "' has " << data->bytes().size()
           << " bytes, its type takes " << expected;
  return data;
}

//===----------------------------------------------------------------------===//
// Dense
//===----------------------------------------------------------------------===//

static LogicalResult packDense(WeightOp weight, DenseFormatAttr format,
                               const Layout &layout, MutableArrayRef<char> out,
                               ::llm::WeightFiles *files) {
  ComponentAttr component = format.getData();
  Type from = component.getType().getElementType();
  if (!from.isF32() && !from.isF16() && !from.isBF16() && !from.isF64())
    return weight.emitOpError("a kernel cannot read elements of type ") << from;
  if (component.getType().getNumElements() != layout.n * layout.k)
    return weight.emitOpError("has ")
           << component.getType().getNumElements()
           << " elements, its layout has " << layout.n << " x " << layout.k;
  FailureOr<::llm::WeightData> data = open(weight, component, files);
  if (failed(data))
    return failure();
  Reader read{data->bytes().data(), from};
  int64_t n = layout.n, k = layout.k, size = bytesOf(layout.type);
  int64_t rowStride = layout.transposed ? 1 : k;
  int64_t columnStride = layout.transposed ? n : 1;
  if (layout.kind == Layout::Kind::Rows) {
    if (from == layout.type && !layout.transposed) {
      std::memcpy(out.data(), data->bytes().data(), out.size());
      return success();
    }
    for (int64_t row = 0; row < n; ++row)
      for (int64_t i = 0; i < k; ++i)
        writeElement(&out[(row * k + i) * size], layout.type,
                     read(row * rowStride + i * columnStride));
    return success();
  }
  std::memset(out.data(), 0, out.size());
  // Inputs side by side in an output's element of a line.
  int64_t together = layout.kind == Layout::Kind::PanelPairs ? 2 : 1;
  int64_t panelBytes = layout.size() / layout.panels();
  for (int64_t panel = 0; panel < layout.panels(); ++panel) {
    int64_t first = panel * kPanelBlock;
    int64_t rows = std::min(kPanelBlock, n - first);
    char *base = &out[panel * panelBytes];
    for (int64_t i = 0; i < k; ++i)
      for (int64_t v = 0; v < rows; ++v)
        writeElement(base + ((i / together * kPanelBlock + v) * together +
                             i % together) *
                                size,
                     layout.type,
                     read((first + v) * rowStride + i * columnStride));
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Affine groups
//===----------------------------------------------------------------------===//

namespace {
/// The parts of an affine weight, read by (row, input) and (row, group).
struct AffineReader {
  const uint8_t *codes = nullptr;
  int64_t codeRowBytes = 0;
  Reader scales;
  const uint8_t *packedZeros = nullptr;
  int64_t zeroRowBytes = 0;
  std::optional<Reader> floatZeros;
  const int8_t *factors = nullptr;
  int64_t factorsPerGroup = 1;
  int64_t bits = 0;
  int64_t groups = 0; ///< as scales are stored

  uint32_t packed(const uint8_t *row, int64_t i) const {
    int64_t bit = i * bits;
    return (row[bit / 8] >> (bit % 8)) & ((1u << bits) - 1);
  }
  uint32_t code(int64_t row, int64_t i) const {
    return packed(codes + row * codeRowBytes, i);
  }
  /// Of a group as it is stored, and of one as factors split it.
  float scale(int64_t row, int64_t g) const { return scales(row * groups + g); }
  float finestScale(int64_t row, int64_t part) const {
    float whole = scale(row, part / factorsPerGroup);
    return factors ? whole * static_cast<float>(factor(row, part)) : whole;
  }
  int factor(int64_t row, int64_t part) const {
    return factors[row * groups * factorsPerGroup + part];
  }
  float zero(int64_t row, int64_t g) const {
    if (floatZeros)
      return (*floatZeros)(row * groups + g);
    if (packedZeros)
      return static_cast<float>(packed(packedZeros + row * zeroRowBytes, g));
    return static_cast<float>(1u << (bits - 1));
  }
};
} // namespace

/// A scale and the `count` factors from number `part` on in one word; none
/// where they do not fit.
static std::optional<uint32_t> packFactors(const AffineReader &read,
                                           int64_t row, int64_t g, int64_t part,
                                           int64_t count) {
  float scale = read.scale(row, g);
  auto bits = llvm::bit_cast<uint32_t>(scale * Layout::kScaleUnit);
  constexpr uint32_t kMask = 0xfffu << Layout::kScaleF32Bit;
  constexpr uint32_t kLeast = 1u << 23;
  // Products below the normal ones are rounded: those stand for 0 alone.
  if ((bits & ~kMask) || (scale != 0 && bits < kLeast))
    return std::nullopt;
  uint32_t word = bits >> Layout::kScaleF32Bit << Layout::kScaleBit;
  for (int64_t i = 0; i < count; ++i) {
    int factor = read.factor(row, part + i);
    if (std::abs(factor) > AffineGroupsFormatAttr::kMaxFactor)
      return std::nullopt;
    constexpr uint32_t kField = (1u << Layout::kFactorBits) - 1;
    word |= (static_cast<uint32_t>(factor) & kField) << Layout::factorBit(i);
  }
  return word;
}

/// False where a scale or a factor does not fit.
static bool packAffinePanels(const AffineReader &read, const Layout &layout,
                             MutableArrayRef<char> out) {
  int64_t perWord = layout.wordInputs();
  for (int64_t panel = 0; panel < layout.panels(); ++panel) {
    int64_t first = panel * kPanelBlock;
    int64_t rows = std::min(kPanelBlock, layout.n - first);
    for (int64_t g = 0; g < layout.groups(); ++g) {
      int64_t length = layout.groupLength(g);
      char *base = &out[panel * layout.panelBytes() +
                        g * layout.groupBytes(layout.groupSize)];
      char *scales = base + layout.codeBytes(length);
      char *zeros = scales + kPanelBlock * bytesOf(layout.scaleType);
      for (int64_t v = 0; v < rows; ++v) {
        for (int64_t i = 0; i < length; ++i) {
          int64_t within = i % perWord;
          char &byte = base[((i / perWord) * kPanelBlock + v) * 4 + within % 4];
          byte = static_cast<char>(
              byte | (read.code(first + v, g * layout.groupSize + i)
                      << (layout.bits * (within / 4))));
        }
        if (layout.factorGroup) {
          int64_t parts = layout.partsOfGroup();
          std::optional<uint32_t> word =
              packFactors(read, first + v, g, g * parts,
                          ceilDiv(length, layout.factorGroup));
          if (!word)
            return false;
          std::memcpy(scales + v * 4, &*word, 4);
          continue;
        }
        writeElement(scales + v * bytesOf(layout.scaleType), layout.scaleType,
                     read.scale(first + v, g));
        if (!layout.zeroType)
          continue;
        float zero = read.zero(first + v, g);
        if (layout.zeroType.isInteger())
          zeros[v] = static_cast<char>(static_cast<uint8_t>(zero));
        else
          writeElement(zeros + v * bytesOf(layout.zeroType), layout.zeroType,
                       zero);
      }
    }
  }
  return true;
}

static void packAffineGPU(const AffineReader &read, const Layout &layout,
                          MutableArrayRef<char> out) {
  std::vector<uint32_t> words = packGPUAffine(
      layout.gpuAffine(),
      [&](int64_t row, int64_t i) { return read.code(row, i); },
      [&](int64_t row, int64_t g) { return read.finestScale(row, g); },
      [&](int64_t row, int64_t g) { return read.zero(row, g); });
  std::memcpy(out.data(), words.data(), out.size());
}

static void packAffineRows(const AffineReader &read, const Layout &layout,
                           MutableArrayRef<char> out) {
  for (int64_t row = 0; row < layout.n; ++row) {
    char *base = &out[row * layout.rowBytes()];
    std::memcpy(base, read.codes + row * read.codeRowBytes,
                ceilDiv(layout.k * layout.bits, 8));
    for (int64_t g = 0; g < layout.groups(); ++g) {
      float scale = read.finestScale(row, g), zero = read.zero(row, g);
      std::memcpy(base + layout.rowCodeBytes() + g * 4, &scale, 4);
      std::memcpy(base + layout.rowCodeBytes() + (layout.groups() + g) * 4,
                  &zero, 4);
    }
  }
}

static LogicalResult packAffine(WeightOp weight, AffineGroupsFormatAttr format,
                                const Layout &layout, MutableArrayRef<char> out,
                                ::llm::WeightFiles *files) {
  int64_t groups = ceilDiv(layout.k, format.getGroupSize());
  RankedTensorType codes = format.getData().getType();
  // A layout without factors has groups as factors split them.
  bool sameGroups = layout.factorGroup
                        ? format.getGroupSize() == layout.groupSize &&
                              format.getFactorGroup() == layout.factorGroup
                        : format.getFinestGroup() == layout.groupSize;
  if (format.getBits() != layout.bits || !sameGroups || codes.getRank() != 2 ||
      codes.getDimSize(0) != layout.n || !codes.getElementType().isInteger(8) ||
      codes.getDimSize(1) * 8 < layout.k * layout.bits)
    return weight.emitOpError("does not have the shape of its layout: ")
           << layout.n << " x " << layout.k << ", " << layout.bits
           << " bits in groups of " << layout.groupSize;
  auto readable = [](Type type) {
    return type.isF32() || type.isF16() || type.isBF16();
  };
  RankedTensorType scaleType = format.getScales().getType();
  if (scaleType.getNumElements() != layout.n * groups ||
      !readable(scaleType.getElementType()))
    return weight.emitOpError("scales are not ")
           << layout.n << " x " << groups << " of f32, f16 or bf16";
  FailureOr<::llm::WeightData> data = open(weight, format.getData(), files);
  FailureOr<::llm::WeightData> scales = open(weight, format.getScales(), files);
  if (failed(data) || failed(scales))
    return failure();
  AffineReader read;
  read.codes = reinterpret_cast<const uint8_t *>(data->bytes().data());
  read.codeRowBytes = codes.getDimSize(1);
  read.scales = {scales->bytes().data(), scaleType.getElementType()};
  read.bits = layout.bits;
  read.groups = groups;
  std::optional<::llm::WeightData> zeros;
  if (ComponentAttr component = format.getZeros()) {
    FailureOr<::llm::WeightData> opened = open(weight, component, files);
    if (failed(opened))
      return failure();
    zeros = *opened;
    RankedTensorType type = component.getType();
    int64_t packedBytes = ceilDiv(groups * layout.bits, 8);
    if (type.getElementType().isInteger(8) &&
        type.getNumElements() == layout.n * packedBytes) {
      read.packedZeros =
          reinterpret_cast<const uint8_t *>(zeros->bytes().data());
      read.zeroRowBytes = packedBytes;
    } else if (type.getNumElements() == layout.n * groups &&
               readable(type.getElementType())) {
      read.floatZeros = Reader{zeros->bytes().data(), type.getElementType()};
    } else {
      return weight.emitOpError("zeros are neither packed codes nor ")
             << layout.n << " x " << groups << " floats";
    }
  }
  std::optional<::llm::WeightData> factors;
  if (ComponentAttr component = format.getFactors()) {
    FailureOr<::llm::WeightData> opened = open(weight, component, files);
    if (failed(opened))
      return failure();
    factors = *opened;
    read.factors = reinterpret_cast<const int8_t *>(factors->bytes().data());
    read.factorsPerGroup = format.getGroupSize() / format.getFactorGroup();
  }
  std::memset(out.data(), 0, out.size());
  if (layout.kind == Layout::Kind::PanelAffine) {
    if (!packAffinePanels(read, layout, out))
      return weight.emitOpError("has a factor outside [-15, 15], or a scale "
                                "that is neither 0 nor a float of 6 bits "
                                "behind the first one from 2^-30 on");
  } else if (layout.kind == Layout::Kind::GPUAffine)
    packAffineGPU(read, layout, out);
  else
    packAffineRows(read, layout, out);
  return success();
}

LogicalResult packWeight(WeightOp weight, DictionaryAttr dict,
                         MutableArrayRef<char> out, ::llm::WeightFiles *files) {
  FailureOr<Layout> layout =
      Layout::parse(dict, [&] { return weight.emitOpError(); });
  if (failed(layout))
    return failure();
  assert(static_cast<int64_t>(out.size()) == layout->size() &&
         "the buffer has packedSize bytes");
  Attribute format = weight.getFormat();
  if (auto dense = dyn_cast<DenseFormatAttr>(format)) {
    if (layout->isAffine())
      return weight.emitOpError("is dense, its layout has affine groups");
    return packDense(weight, dense, *layout, out, files);
  }
  if (auto affine = dyn_cast<AffineGroupsFormatAttr>(format)) {
    if (!layout->isAffine())
      return weight.emitOpError("has affine groups, its layout is dense");
    return packAffine(weight, affine, *layout, out, files);
  }
  return weight.emitOpError("no packer for the format ") << format;
}

} // namespace mlir::llm
