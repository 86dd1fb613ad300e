//===- ElementTypes.cpp - Sizes and names of element types -------------===//
//
// Part of the LLM compiler, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/artifact/ElementTypes.h"

#include <array>

namespace llm::runtime {

namespace {
struct Element {
  artifact::ElementType type;
  int bits;
  std::string_view name;
};
constexpr std::array elements = std::to_array<Element>({
    {artifact::F32, 32, "f32"},
    {artifact::F16, 16, "f16"},
    {artifact::BF16, 16, "bf16"},
    {artifact::F64, 64, "f64"},
    {artifact::I8, 8, "i8"},
    {artifact::U8, 8, "u8"},
    {artifact::I16, 16, "i16"},
    {artifact::U16, 16, "u16"},
    {artifact::I32, 32, "i32"},
    {artifact::U32, 32, "u32"},
    {artifact::I64, 64, "i64"},
    {artifact::U64, 64, "u64"},
    {artifact::BOOL, 8, "bool"},
    {artifact::I4, 4, "i4"},
    {artifact::U4, 4, "u4"},
    {artifact::F8E4M3FN, 8, "f8E4M3FN"},
    {artifact::F8E4M3FNUZ, 8, "f8E4M3FNUZ"},
    {artifact::F8E5M2, 8, "f8E5M2"},
    {artifact::F8E5M2FNUZ, 8, "f8E5M2FNUZ"},
    {artifact::F4E2M1FN, 4, "f4E2M1FN"},
    {artifact::F8E8M0FNU, 8, "f8E8M0FNU"},
    {artifact::I2, 2, "i2"},
    {artifact::U2, 2, "u2"},
});

const Element *find(artifact::ElementType type) {
  for (const Element &element : elements)
    if (element.type == type)
      return &element;
  return nullptr;
}
} // namespace

int elementBits(artifact::ElementType type) {
  const Element *element = find(type);
  return element ? element->bits : 0;
}

std::optional<uint64_t> elementBytes(artifact::ElementType type,
                                     int64_t elements) {
  int64_t bits = 0;
  int size = elementBits(type);
  if (size == 0 || elements < 0 ||
      __builtin_mul_overflow(elements, int64_t(size), &bits) ||
      __builtin_add_overflow(bits, int64_t(7), &bits))
    return std::nullopt;
  return static_cast<uint64_t>(bits / 8);
}

std::string_view elementName(artifact::ElementType type) {
  const Element *element = find(type);
  return element ? element->name : "unknown";
}

} // namespace llm::runtime
